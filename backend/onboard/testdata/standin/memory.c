// Device and pinned memory, both really on the heap, so that a sanitizer sees
// what touches it. Fresh memory is painted.

#include "standin.h"

#include <stdlib.h>
#include <string.h>

static struct allocation {
	unsigned char *at;
	size_t size;
	int host, device;
	uint64_t serial;
} memory[MAX_MEMORY];
static uint64_t serial;
static int top; // places that were ever taken

static struct allocation *covering(const void *p, size_t size)
{
	const unsigned char *b = p;
	for (int i = 0; i < top; i++) {
		struct allocation *a = &memory[i];
		if (a->at != NULL && b >= a->at && size <= a->size && (size_t)(b - a->at) <= a->size - size)
			return a;
	}
	return NULL;
}

uint64_t memory_at(const void *p, size_t size)
{
	struct allocation *a = covering(p, size);
	return a != NULL ? a->serial : 0;
}

static void drop(struct allocation *a)
{
	free(a->at);
	g.allocated -= a->size;
	*a = (struct allocation){0};
}

void drop_memory(int device)
{
	for (int i = 0; i < top; i++)
		if (memory[i].at != NULL && (device < 0 || memory[i].device == device))
			drop(&memory[i]);
}

int live_memory(void)
{
	int n = 0;
	for (int i = 0; i < top; i++)
		n += memory[i].at != NULL;
	return n;
}

static int allocate(void **p, size_t size, int host)
{
	if (size == 0)
		return PARAM_INVALID;
	if (size > g.memory_limit - g.allocated)
		return OUT_OF_MEMORY;
	for (int i = 0; i < MAX_MEMORY; i++) {
		struct allocation *a = &memory[i];
		if (a->at != NULL)
			continue;
		a->at = malloc(size);
		if (a->at == NULL)
			break;
		memset(a->at, 0xdb, size);
		if (i >= top)
			top = i + 1;
		a->size = size;
		a->host = host;
		a->device = current_device();
		a->serial = ++serial;
		g.allocated += size;
		*p = a->at;
		return OK;
	}
	return OUT_OF_MEMORY;
}

static int release(void *p, int host)
{
	struct allocation *a = covering(p, 1);
	if (a == NULL || a->at != p || a->host != host) {
		misuse("memory was freed that is not there");
		return PARAM_INVALID;
	}
	drop(a);
	return OK;
}

API int aclrtMalloc(void **p, size_t size, int policy)
{
	(void)policy;
	struct call c = {0};
	int code = begin(&c, "aclrtMalloc", 1);
	return end(&c, code == OK ? allocate(p, size, 0) : code);
}

API int aclrtMallocHost(void **p, size_t size)
{
	struct call c = {0};
	int code = begin(&c, "aclrtMallocHost", 1);
	return end(&c, code == OK ? allocate(p, size, 1) : code);
}

API int aclrtFree(void *p)
{
	struct call c = {0};
	int code = begin(&c, "aclrtFree", 1);
	return end(&c, code == OK ? release(p, 0) : code);
}

API int aclrtFreeHost(void *p)
{
	struct call c = {0};
	int code = begin(&c, "aclrtFreeHost", 1);
	return end(&c, code == OK ? release(p, 1) : code);
}

API int aclrtMemset(void *p, size_t most, int32_t value, size_t count)
{
	struct call c = {0};
	int code = begin(&c, "aclrtMemset", 1);
	if (code == OK && (count > most || memory_at(p, count) == 0))
		code = PARAM_INVALID;
	if (code == OK)
		memset(p, value, count);
	return end(&c, code);
}

// Checks the two sides of a copy against its kind.
static int sides(const void *dst, size_t most, const void *src, size_t count, int kind, struct entry *e)
{
	struct allocation *d = covering(dst, count), *s = covering(src, count);
	if (d == NULL || s == NULL) {
		misuse("a copy names memory that is not there");
		return PARAM_INVALID;
	}
	if (count == 0 || count > most || kind != (s->host ? 0 : 2) + (d->host ? 0 : 1))
		return PARAM_INVALID;
	e->dst_serial = d->serial;
	e->src_serial = s->serial;
	return OK;
}

API int aclrtMemcpy(void *dst, size_t most, const void *src, size_t count, int kind)
{
	struct call c = {0};
	struct entry e = {0};
	int code = begin(&c, "aclrtMemcpy", 1);
	if (code == OK)
		code = sides(dst, most, src, count, kind, &e);
	if (code == OK)
		memmove(dst, src, count);
	return end(&c, code);
}

API int aclrtMemcpyAsync(void *dst, size_t most, const void *src, size_t count, int kind, handle stream)
{
	struct call c = {0};
	struct entry e = {.kind = ENTRY_COPY, .dst = dst, .src = src, .size = count};
	int code = begin(&c, "aclrtMemcpyAsync", 1);
	struct stream *s = code == OK ? find_stream(stream, &code) : NULL;
	if (code == OK)
		code = sides(dst, most, src, count, kind, &e);
	if (code == OK)
		code = enqueue(s, &e);
	return end(&c, code);
}
