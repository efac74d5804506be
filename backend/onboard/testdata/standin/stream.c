// Streams: a thread and a queue each.

#include "standin.h"

#include <stdlib.h>

struct stream streams[MAX_STREAMS];
int stream_top;

struct stream *find_stream(handle h, int *code)
{
	int i = handle_index(h, KIND_STREAM, MAX_STREAMS);
	if (i < 0 || !streams[i].live || streams[i].gen != handle_gen(h)) {
		misuse(i < 0 ? "a stream was named that never was" : "a stream was used after it was destroyed");
		*code = INVALID_HANDLE;
		return NULL;
	}
	if (streams[i].context != current_context()) {
		*code = STREAM_CONTEXT;
		return NULL;
	}
	return &streams[i];
}

static void start(struct stream *s, struct entry *e)
{
	s->due = s->flag_due = NEVER;
	s->working = s->flagged = 0;
	e->started = 1;
	if (e->kind == ENTRY_COPY)
		s->due = e->due = g.now + g.copy_time;
	if (e->kind == ENTRY_KERNEL)
		start_kernel(s, e);
}

static void finish(struct stream *s, struct entry *e)
{
	switch (e->kind) {
	case ENTRY_KERNEL: exit_kernel(s, e); break;
	case ENTRY_RECORD: recorded(e); break;
	case ENTRY_WAIT: waited(e); break;
	case ENTRY_COPY:
		if (memory_at(e->dst, e->size) != e->dst_serial || memory_at(e->src, e->size) != e->src_serial) {
			misuse("a queued copy ran after its memory was freed");
			break;
		}
		for (size_t i = 0; i < e->size; i++) // byte by byte, for the sanitizers to see
			((unsigned char *)e->dst)[i] = ((const unsigned char *)e->src)[i];
		break;
	}
	s->head = e->next;
	if (s->head == NULL)
		s->tail = NULL;
	s->length--;
	s->due = s->flag_due = NEVER;
	free(e);
}

// Does one thing, if there is one to do at this instant.
static int turn(struct stream *s)
{
	struct entry *e = s->head;
	if (e == NULL)
		return 0;
	if (!e->started) {
		start(s, e);
		return 1;
	}
	switch (e->kind) {
	case ENTRY_WAIT:
		if (!e->satisfied)
			return 0;
		break;
	case ENTRY_COPY:
		if (g.now < e->due)
			return 0;
		break;
	case ENTRY_KERNEL: {
		struct function *f = &functions[e->function];
		if (!s->working) {
			if (!met(e))
				return 0;
			s->working = 1;
			s->due = e->hang ? NEVER : g.now + f->duration;
			s->flag_due = f->flag ? g.now + f->flag_after : NEVER;
			return 1;
		}
		if (s->flag_due <= g.now) {
			s->flag_due = NEVER;
			s->flagged = 1;
			publish(e);
			return 1;
		}
		if (g.now < s->due)
			return 0;
		break;
	}
	}
	finish(s, e);
	return 1;
}

static void empty(struct stream *s)
{
	while (s->head != NULL) {
		struct entry *e = s->head;
		s->head = e->next;
		free(e);
	}
	s->tail = NULL;
	s->length = 0;
	s->due = s->flag_due = NEVER;
}

static void *work(void *arg)
{
	struct stream *s = arg;
	pthread_mutex_lock(&g.lock);
	while (!s->killed && (s->live || s->head != NULL)) {
		if (turn(s))
			stir();
		else
			park();
	}
	empty(s);
	s->running = 0;
	leave_workers();
	pthread_cond_broadcast(&g.quiet);
	pthread_mutex_unlock(&g.lock);
	return NULL;
}

ns next_stream_due(void)
{
	ns at = NEVER;
	for (int i = 0; i < stream_top; i++) {
		if (!streams[i].running)
			continue;
		if (streams[i].due < at)
			at = streams[i].due;
		if (streams[i].flag_due < at)
			at = streams[i].flag_due;
	}
	return at;
}

// The stream under capture takes no work: it goes into the graph.
int enqueue(struct stream *s, const struct entry *e)
{
	if (s->capture != 0)
		return STREAM_CAPTURED;
	struct entry *n = malloc(sizeof *n);
	if (n == NULL)
		return OUT_OF_MEMORY;
	*n = *e;
	n->next = NULL;
	n->started = 0;
	n->task = ++s->tasks;
	if (s->tail != NULL)
		s->tail->next = n;
	else
		s->head = n;
	s->tail = n;
	s->length++;
	stir();
	return OK;
}

// A record has executed: waits for it pass.
void satisfy(int event, uint32_t gen, uint32_t seq)
{
	for (int i = 0; i < stream_top; i++)
		for (struct entry *e = streams[i].head; e != NULL; e = e->next)
			if (e->kind == ENTRY_WAIT && e->event == event && e->gen == gen && e->seq == seq)
				e->satisfied = 1;
	for (struct wait *w = waits; w != NULL; w = w->next)
		if (w->event == event && w->gen == gen && w->seq == seq)
			w->satisfied = 1;
}

// Takes the work of a device, or of all with -1, away from it. The threads end.
void kill_streams(int device)
{
	for (int i = 0; i < stream_top; i++) {
		struct stream *s = &streams[i];
		if (!s->running || (device >= 0 && s->device != device))
			continue;
		s->live = 0;
		s->killed = 1;
		empty(s);
	}
	forget_pairs(device);
}

int running_streams(void)
{
	int n = 0;
	for (int i = 0; i < stream_top; i++)
		n += streams[i].running;
	return n;
}

int live_streams(void)
{
	int n = 0;
	for (int i = 0; i < stream_top; i++)
		n += streams[i].live;
	return n;
}

static int create(handle *out)
{
	for (int i = 0; i < MAX_STREAMS; i++) {
		struct stream *s = &streams[i];
		if (s->live || s->running)
			continue;
		uint32_t gen = s->gen + 1;
		if (i >= stream_top)
			stream_top = i + 1;
		*s = (struct stream){.gen = gen, .live = 1, .running = 1, .id = i, .due = NEVER, .flag_due = NEVER};
		s->context = current_context();
		s->device = current_device();
		pthread_t thread;
		join_workers();
		if (pthread_create(&thread, NULL, work, s) != 0) {
			s->live = s->running = 0;
			g.workers--;
			return OUT_OF_MEMORY;
		}
		pthread_detach(thread);
		*out = make_handle(KIND_STREAM, i, gen);
		return OK;
	}
	return OUT_OF_MEMORY;
}

API int aclrtCreateStreamWithConfig(handle *stream, uint32_t priority, uint32_t flag)
{
	(void)priority;
	(void)flag;
	struct call c = {0};
	int code = begin(&c, "aclrtCreateStreamWithConfig", 1);
	return end(&c, code == OK ? create(stream) : code);
}

API int aclrtCreateStream(handle *stream)
{
	struct call c = {0};
	int code = begin(&c, "aclrtCreateStream", 1);
	return end(&c, code == OK ? create(stream) : code);
}

// What is queued goes on.
API int aclrtDestroyStream(handle h)
{
	struct call c = {0};
	int code = begin(&c, "aclrtDestroyStream", 1);
	struct stream *s = code == OK ? find_stream(h, &code) : NULL;
	if (s != NULL) {
		s->live = 0;
		stir();
	}
	return end(&c, code);
}

API int aclrtStreamGetId(handle h, int32_t *id)
{
	struct call c = {0};
	int code = begin(&c, "aclrtStreamGetId", 1);
	struct stream *s = code == OK ? find_stream(h, &code) : NULL;
	if (s != NULL)
		*id = s->id;
	return end(&c, code);
}

static int query(handle h, int *complete, const char *name)
{
	struct call c = {.query = 1};
	int code = begin(&c, name, 1);
	struct stream *s = code == OK ? find_stream(h, &code) : NULL;
	*complete = 0;
	if (s != NULL && s->capture == 1)
		code = STREAM_CAPTURED;
	else if (s != NULL && s->error != OK)
		code = s->error;
	else if (s != NULL)
		*complete = s->length == 0;
	return end(&c, code);
}

API int aclrtStreamQuery(handle h, uint32_t *status)
{
	int complete;
	int code = query(h, &complete, "aclrtStreamQuery");
	*status = complete ? 0 : 1;
	return code;
}

// What libruntime.so calls for rtStreamQuery.
API int standin_rt_stream_query(handle h)
{
	int complete;
	int code = query(h, &complete, "rtStreamQuery");
	return code == OK && !complete ? STREAM_NOT_COMPLETE : code;
}

// A synchronize is what makes a kernel's fault known.
API int aclrtSynchronizeStreamWithTimeout(handle h, int32_t ms)
{
	struct call c = {0};
	int code = begin(&c, "aclrtSynchronizeStreamWithTimeout", 1);
	struct stream *s = code == OK ? find_stream(h, &code) : NULL;
	if (s == NULL)
		return end(&c, code);
	if (ms <= 0)
		return end(&c, PARAM_INVALID);
	if (s->capture == 1)
		return end(&c, STREAM_CAPTURED);
	uint32_t gen = s->gen;
	struct wait w = {.event = -1, .device = s->device};
	unsettle();
	wait_begin(&w, ms);
	while (!w.expired && !w.aborted && s->gen == gen && (s->length > 0 || c.strike.hang))
		park();
	int drained = s->gen != gen || (s->length == 0 && !c.strike.hang);
	wait_end(&w);
	g.settling++; // for end
	if (w.aborted)
		return end(&c, TASK_ABORT);
	if (!drained)
		return end(&c, STREAM_SYNC_TIMEOUT);
	if (s->gen != gen)
		return end(&c, OK);
	if (s->error == OK)
		s->error = s->fault;
	s->fault = OK;
	return end(&c, s->error);
}

API int aclmdlRICaptureGetInfo(handle h, uint32_t *status, handle *model)
{
	struct call c = {0};
	int code = begin(&c, "aclmdlRICaptureGetInfo", 1);
	struct stream *s = code == OK ? find_stream(h, &code) : NULL;
	if (s != NULL) {
		*status = s->capture;
		*model = NULL;
	}
	return end(&c, code);
}
