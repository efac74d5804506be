// What every call of the interface begins and ends with: the lock, the faults,
// the context, and the calling thread's last error.

#include "standin.h"

#include <stdio.h>

static __thread struct {
	uint32_t incarnation;
	int error;
	char words[160];
} thread;

static void fresh(void)
{
	if (thread.incarnation == g.incarnation)
		return;
	thread.incarnation = g.incarnation;
	thread.error = OK;
	thread.words[0] = 0;
}

// Takes the lock. A code other than OK is to be the call's answer; end must be
// called either way.
int begin(struct call *c, const char *name, int needs_context)
{
	pthread_mutex_lock(&g.lock);
	fresh();
	settle();
	if (c->query && g.query_time > 0 && !g.eager)
		advance(g.query_time);
	g.calls++;
	c->name = name;
	c->strike = strike(name);
	if (c->strike.before != OK)
		return c->strike.before;
	if (needs_context && current_context() < 0)
		return CONTEXT_NULL;
	return OK;
}

// Makes a code the thread's last error; one of the layer above the runtime is
// none of the runtime's.
int note(const char *name, int code)
{
	if (code == OK)
		return OK;
	fresh();
	if (code >= PARAM_INVALID)
		thread.error = code;
	snprintf(thread.words, sizeof thread.words, "stand-in: %s answered %d", name, code);
	return code;
}

int end(struct call *c, int code)
{
	if (code == SKIPPED)
		code = OK;
	if (code == OK && c->strike.after != OK)
		code = c->strike.after;
	note(c->name, code);
	unsettle();
	pthread_mutex_unlock(&g.lock);
	return code;
}

int last_error(int clear)
{
	pthread_mutex_lock(&g.lock);
	fresh();
	int e = thread.error;
	if (clear)
		thread.error = OK;
	pthread_mutex_unlock(&g.lock);
	return e;
}

API int aclrtPeekAtLastError(int level)
{
	(void)level;
	return last_error(0);
}

API int aclrtGetLastError(int level)
{
	(void)level;
	return last_error(1);
}

API const char *aclGetRecentErrMsg(void)
{
	static __thread char words[sizeof thread.words];
	pthread_mutex_lock(&g.lock);
	fresh();
	snprintf(words, sizeof words, "%s", thread.words);
	thread.words[0] = 0;
	pthread_mutex_unlock(&g.lock);
	return words[0] != 0 ? words : NULL;
}

handle make_handle(int kind, int index, uint32_t gen)
{
	return (handle)(((uintptr_t)gen << 24) | ((uintptr_t)index << 4) | (uintptr_t)kind);
}

int handle_index(handle h, int kind, int limit)
{
	uintptr_t v = (uintptr_t)h;
	int index = (int)(v >> 4 & 0xfffff);
	return (int)(v & 15) == kind && index < limit ? index : -1;
}

uint32_t handle_gen(handle h) { return (uint32_t)((uintptr_t)h >> 24); }
