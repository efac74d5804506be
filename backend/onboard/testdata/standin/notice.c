// Exception callbacks, from a thread of the driver's own.

#include "standin.h"

#include <stdlib.h>

struct exception {
	uint32_t task, stream, thread, device, code;
};

typedef void (*callback)(void *);

static callback callbacks[2]; // set, registered

struct pending {
	struct pending *next;
	ns due;
	struct exception x;
};
static struct pending *pending;
static int started, calling;

ns next_notice_due(void)
{
	ns at = NEVER;
	for (struct pending *p = pending; p != NULL; p = p->next)
		if (p->due < at)
			at = p->due;
	return at;
}

static struct pending *take_due(void)
{
	for (struct pending **p = &pending; *p != NULL; p = &(*p)->next)
		if ((*p)->due <= g.now) {
			struct pending *due = *p;
			*p = due->next;
			return due;
		}
	return NULL;
}

static void *notify(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&g.lock);
	for (;;) {
		struct pending *p = take_due();
		if (p == NULL) {
			park();
			continue;
		}
		callback to[2] = {callbacks[0], callbacks[1]};
		calling = 1;
		pthread_mutex_unlock(&g.lock);
		for (int i = 0; i < 2; i++)
			if (to[i] != NULL)
				to[i](&p->x);
		free(p);
		pthread_mutex_lock(&g.lock);
		calling = 0;
		stir();
	}
	return NULL;
}

void post(int device, int stream, uint32_t task, int code, ns due)
{
	struct pending *p = malloc(sizeof *p), **last = &pending;
	if (p == NULL)
		abort();
	*p = (struct pending){.due = due, .x = {task, (uint32_t)stream, 7, (uint32_t)device, (uint32_t)code}};
	while (*last != NULL)
		last = &(*last)->next;
	*last = p;
	if (!started) {
		pthread_t thread;
		started = 1;
		join_workers();
		if (pthread_create(&thread, NULL, notify, NULL) != 0)
			abort();
		pthread_detach(thread);
	}
	stir();
}

// Waits until no callback is under way, and forgets those to come.
void forget_notices(void)
{
	while (pending != NULL) {
		struct pending *p = pending;
		pending = p->next;
		free(p);
	}
	while (calling)
		pthread_cond_wait(&g.changed, &g.lock);
	callbacks[0] = callbacks[1] = NULL;
}

// A callback from the calling thread.
void call_back(int device, int stream, uint32_t task, uint32_t thread, int code)
{
	struct exception x = {task, (uint32_t)stream, thread, (uint32_t)device, (uint32_t)code};
	pthread_mutex_lock(&g.lock);
	callback to[2] = {callbacks[0], callbacks[1]};
	pthread_mutex_unlock(&g.lock);
	for (int i = 0; i < 2; i++)
		if (to[i] != NULL)
			to[i](&x);
}

API int aclrtSetExceptionInfoCallback(callback f)
{
	struct call c = {0};
	int code = begin(&c, "aclrtSetExceptionInfoCallback", 0);
	if (code == OK)
		callbacks[0] = f;
	return end(&c, code);
}

API int aclrtExceptionInfoCallbackRegister(callback f)
{
	struct call c = {0};
	int code = begin(&c, "aclrtExceptionInfoCallbackRegister", 0);
	if (code == OK)
		callbacks[1] = f;
	return end(&c, code);
}

API uint32_t aclrtGetTaskIdFromExceptionInfo(const struct exception *x) { return x->task; }
API uint32_t aclrtGetStreamIdFromExceptionInfo(const struct exception *x) { return x->stream; }
API uint32_t aclrtGetThreadIdFromExceptionInfo(const struct exception *x) { return x->thread; }
API uint32_t aclrtGetDeviceIdFromExceptionInfo(const struct exception *x) { return x->device; }
API uint32_t aclrtGetErrorCodeFromExceptionInfo(const struct exception *x) { return x->code; }
