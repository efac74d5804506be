// Kernels: behaviours, read from an image file that is text.
//
//	# a comment
//	kernel NAME class=core|cpu duration=10us [paired] [spin] [flag=5us]
//	       [exit=507018] [store=start|flag|exit|fatal:OFFSET:SIZE:VALUE]...
//
// on one line each. A paired AICPU kernel spins until the AICore kernel with
// the same argument has started; with spin, an AICore kernel waits for its
// AICPU kernel in turn. A flag is published so long after the handshake, before
// the kernel returns. A store writes up to eight bytes to the argument memory.

#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_START, AT_FLAG, AT_EXIT, AT_FATAL };
enum { MAX_IMAGES = 1024, ABSENT = 0, QUEUED, STARTED, EXITED };

struct function functions[MAX_FUNCTIONS];
static int function_count;

static struct {
	uint32_t gen;
	int live, device, first, count;
} images[MAX_IMAGES];

// A pair is two launches with one argument: the newest launch of the other
// class that has no partner yet.
static struct pair {
	uint32_t serial; // 0: free
	void *args;
	int side[2], stream[2]; // by class
} pairs[1024];
static uint32_t pair_serial;

int join_pair(int cpu, void *args, int stream)
{
	struct pair *best = NULL, *spare = NULL;
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		struct pair *p = &pairs[i];
		if (p->serial == 0)
			spare = spare != NULL ? spare : p;
		else if (p->args == args && p->side[cpu] == ABSENT && (best == NULL || p->serial > best->serial))
			best = p;
	}
	if (best == NULL) {
		if ((best = spare) == NULL)
			abort();
		*best = (struct pair){.serial = ++pair_serial, .args = args, .stream = {-1, -1}};
	}
	best->side[cpu] = QUEUED;
	best->stream[cpu] = stream;
	return (int)(best - pairs);
}

void forget_pairs(int device)
{
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		int s = pairs[i].stream[0] >= 0 ? pairs[i].stream[0] : pairs[i].stream[1];
		if (pairs[i].serial != 0 && (device < 0 || streams[s].device == device))
			pairs[i].serial = 0;
	}
}

int met(const struct entry *e)
{
	if (e->pair < 0)
		return 1;
	if (e->cpu)
		return pairs[e->pair].side[0] >= STARTED;
	return !functions[e->function].spin || pairs[e->pair].side[1] >= STARTED;
}

// Which stream the partner of a kernel is on; 0 if it was never submitted.
int partner(const struct entry *e, int *stream)
{
	*stream = pairs[e->pair].stream[!e->cpu];
	return pairs[e->pair].side[!e->cpu] != ABSENT;
}

static void stores(struct entry *e, int when)
{
	struct function *f = &functions[e->function];
	for (int i = 0; i < f->count; i++) {
		if (f->stores[i].when != when || e->args == NULL)
			continue;
		unsigned char *at = (unsigned char *)e->args + f->stores[i].offset;
		if (memory_at(e->args, 1) != e->args_serial || memory_at(at, (size_t)f->stores[i].size) != e->args_serial) {
			misuse("a kernel wrote to memory that is not there");
			continue;
		}
		for (int b = 0; b < f->stores[i].size; b++)
			at[b] = (unsigned char)(f->stores[i].value >> (8 * b));
	}
}

void start_kernel(struct stream *s, struct entry *e)
{
	(void)s;
	if (e->args != NULL && memory_at(e->args, 1) != e->args_serial)
		misuse("a kernel started after its arguments were freed");
	stores(e, AT_START);
	if (e->pair >= 0)
		pairs[e->pair].side[e->cpu] = STARTED;
}

void publish(struct entry *e) { stores(e, AT_FLAG); }

void exit_kernel(struct stream *s, struct entry *e)
{
	if (e->exit == OK) {
		if (s->flag_due != NEVER)
			publish(e);
		stores(e, AT_EXIT);
	} else {
		stores(e, AT_FATAL);
		if (s->fault == OK)
			s->fault = e->exit;
		if (!e->lost)
			post(s->device, s->id, e->task, e->exit, g.now + e->notice);
	}
	if (e->pair < 0)
		return;
	struct pair *p = &pairs[e->pair];
	p->side[e->cpu] = EXITED;
	if (p->side[!e->cpu] == EXITED)
		p->serial = 0;
}

void drop_images(int device)
{
	for (int i = 0; i < MAX_IMAGES; i++)
		if (images[i].device == device)
			images[i].live = 0;
}

void forget_kernels(void)
{
	function_count = 0;
	for (int i = 0; i < MAX_IMAGES; i++)
		images[i].live = 0;
	forget_pairs(-1);
}

static int parse_time(const char *text, ns *out)
{
	char *unit;
	double v = strtod(text, &unit);
	double scale = strcmp(unit, "ns") == 0 ? 1 : strcmp(unit, "us") == 0 ? 1e3 : strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "s") == 0 ? 1e9 : 0;
	*out = (ns)(v * scale);
	return scale != 0 && v >= 0;
}

static int parse_store(const char *text, struct function *f)
{
	static const char *const whens[] = {"start", "flag", "exit", "fatal"};
	char when[8];
	unsigned long long offset, value;
	int size;
	if (f->count == 8 || sscanf(text, "%7[^:]:%llu:%d:%llu", when, &offset, &size, &value) != 4 || size < 1 || size > 8)
		return 0;
	for (int i = 0; i < 4; i++) {
		if (strcmp(when, whens[i]) != 0)
			continue;
		f->stores[f->count].when = i;
		f->stores[f->count].offset = offset;
		f->stores[f->count].size = size;
		f->stores[f->count++].value = value;
		return 1;
	}
	return 0;
}

// Reads one line of an image into a function; 0 if it makes no sense.
static int parse(char *line, struct function *f)
{
	char *save, *word = strtok_r(line, " \t\n", &save);
	if (word == NULL || strcmp(word, "kernel") != 0 || (word = strtok_r(NULL, " \t\n", &save)) == NULL)
		return 0;
	memset(f, 0, sizeof *f);
	snprintf(f->name, sizeof f->name, "%s", word);
	int classed = 0, good = 1;
	while ((word = strtok_r(NULL, " \t\n", &save)) != NULL) {
		if (strcmp(word, "paired") == 0)
			f->paired = 1;
		else if (strcmp(word, "spin") == 0)
			f->spin = 1;
		else if (strcmp(word, "class=core") == 0 || strcmp(word, "class=cpu") == 0)
			classed = 1, f->cpu = strcmp(word, "class=cpu") == 0;
		else if (strncmp(word, "duration=", 9) == 0)
			good &= parse_time(word + 9, &f->duration);
		else if (strncmp(word, "flag=", 5) == 0)
			good &= f->flag = parse_time(word + 5, &f->flag_after);
		else if (strncmp(word, "exit=", 5) == 0)
			good &= (f->exit = atoi(word + 5)) != 0;
		else if (strncmp(word, "store=", 6) == 0)
			good &= parse_store(word + 6, f);
		else
			good = 0;
	}
	return good && classed;
}

struct load_option {
	int32_t type;
	union {
		int32_t cpu_kernel_mode;
		uint32_t reserved[4];
	} value;
};

struct load_options {
	struct load_option *options;
	size_t count;
};

static int load(const char *path, int cpu, handle *out)
{
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return PARAM_INVALID;
	char line[512];
	int first = function_count, good = 1;
	while (good && fgets(line, sizeof line, file) != NULL) {
		if (line[0] == '#' || line[strspn(line, " \t\n")] == 0)
			continue;
		good = function_count < MAX_FUNCTIONS && parse(line, &functions[function_count]) &&
		       functions[function_count].cpu == cpu;
		function_count += good;
	}
	fclose(file);
	for (int i = 0; good && i < MAX_IMAGES; i++) {
		if (images[i].live)
			continue;
		images[i].live = 1;
		images[i].gen++;
		images[i].device = current_device();
		images[i].first = first;
		images[i].count = function_count - first;
		*out = make_handle(KIND_IMAGE, i, images[i].gen);
		return OK;
	}
	function_count = first;
	return PARAM_INVALID;
}

API int aclrtBinaryLoadFromFile(const char *path, struct load_options *options, handle *image)
{
	struct call c = {0};
	int code = begin(&c, "aclrtBinaryLoadFromFile", 1);
	int cpu = 0;
	for (size_t i = 0; options != NULL && i < options->count; i++)
		cpu |= options->options[i].type == 3 &&
		       (options->options[i].value.cpu_kernel_mode == 0 || options->options[i].value.cpu_kernel_mode == 1);
	return end(&c, code == OK ? load(path, cpu, image) : code);
}

static int find_image(handle h, int *code)
{
	int i = handle_index(h, KIND_IMAGE, MAX_IMAGES);
	if (i >= 0 && images[i].live && images[i].gen == handle_gen(h))
		return i;
	misuse("an image was used that is not loaded");
	*code = PARAM_INVALID;
	return -1;
}

API int aclrtBinaryUnLoad(handle h)
{
	struct call c = {0};
	int code = begin(&c, "aclrtBinaryUnLoad", 1);
	int i = code == OK ? find_image(h, &code) : -1;
	if (i >= 0)
		images[i].live = 0;
	return end(&c, code);
}

static int find_function(int image, const char *name, int cpu_only, handle *out)
{
	for (int i = images[image].first; i < images[image].first + images[image].count; i++) {
		if (strcmp(functions[i].name, name) != 0 || (cpu_only && !functions[i].cpu))
			continue;
		*out = make_handle(KIND_FUNCTION, i, 1);
		return OK;
	}
	return PARAM_INVALID;
}

API int aclrtBinaryGetFunction(handle image, const char *name, handle *function)
{
	struct call c = {0};
	int code = begin(&c, "aclrtBinaryGetFunction", 1);
	int i = code == OK ? find_image(image, &code) : -1;
	return end(&c, i >= 0 ? find_function(i, name, 0, function) : code);
}

API int aclrtRegisterCpuFunc(handle image, const char *name, const char *op_type, handle *function)
{
	struct call c = {0};
	int code = begin(&c, "aclrtRegisterCpuFunc", 1);
	int i = code == OK ? find_image(image, &code) : -1;
	if (i >= 0 && op_type[0] == 0)
		return end(&c, PARAM_INVALID);
	return end(&c, i >= 0 ? find_function(i, name, 1, function) : code);
}

API int aclrtLaunchKernelWithHostArgs(handle function, uint32_t blocks, handle stream, void *config, void *args,
				      size_t size, void *place_holders, size_t place_holder_count)
{
	(void)config;
	(void)place_holders;
	struct call c = {0};
	int code = begin(&c, "aclrtLaunchKernelWithHostArgs", 1);
	struct stream *s = code == OK ? find_stream(stream, &code) : NULL;
	int f = handle_index(function, KIND_FUNCTION, function_count);
	if (s == NULL)
		return end(&c, code);
	if (f < 0 || blocks == 0 || place_holder_count != 0 || (args == NULL) != (size == 0) || size % sizeof(void *) != 0)
		return end(&c, PARAM_INVALID);
	struct entry e = {
		.kind = ENTRY_KERNEL, .function = f, .cpu = functions[f].cpu, .pair = -1, .exit = functions[f].exit,
		.hang = c.strike.hang, .lost = c.strike.lost, .notice = g.notice_time,
	};
	if (args != NULL)
		memcpy(&e.args, args, sizeof e.args); // the package is the host's until this call returns
	if (e.args != NULL && (e.args_serial = memory_at(e.args, 1)) == 0) {
		misuse("a kernel was launched with memory that is not there");
		return end(&c, PARAM_INVALID);
	}
	if (c.strike.fatal != OK)
		e.exit = c.strike.fatal;
	if (c.strike.late >= 0)
		e.notice = c.strike.late;
	if (functions[f].paired && s->capture == 0)
		e.pair = join_pair(e.cpu, e.args, (int)(s - streams));
	return end(&c, enqueue(s, &e));
}
