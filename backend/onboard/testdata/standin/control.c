// What tests call.

#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// What the library is compiled with.
API const char *standin_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return "address";
#elif defined(__SANITIZE_THREAD__)
	return "thread";
#else
	return "none";
#endif
}

// A driver as if it had just been loaded. The threads of earlier streams have
// ended when it returns.
API void standin_restart(void)
{
	pthread_mutex_lock(&g.lock);
	clear_faults();
	kill_streams(-1);
	for (struct wait *w = waits; w != NULL; w = w->next)
		w->aborted = 1;
	stir();
	while (running_streams() > 0)
		pthread_cond_wait(&g.quiet, &g.lock);
	forget_notices();
	drop_events(-1);
	drop_memory(-1);
	forget_contexts();
	forget_kernels();
	g.now = 0;
	g.incarnation++;
	g.eager = g.still = 0;
	g.query_time = g.notice_time = g.copy_time = 0;
	g.unrecorded_passes = 1;
	g.memory_limit = 64 << 20;
	g.devices = 8;
	g.misuses = 0;
	g.misuse[0] = 0;
	g.calls = g.context_sets = 0;
	pthread_mutex_unlock(&g.lock);
}

API void standin_configure(int64_t query_time, int64_t copy_time, int64_t notice_time, int unrecorded_passes,
			   uint64_t memory_limit, int devices)
{
	pthread_mutex_lock(&g.lock);
	g.query_time = query_time;
	g.copy_time = copy_time;
	g.notice_time = notice_time;
	g.unrecorded_passes = unrecorded_passes;
	g.memory_limit = memory_limit;
	g.devices = devices;
	pthread_mutex_unlock(&g.lock);
}

// Calls do not let things settle first: threads race as they would.
API void standin_eager(int on)
{
	pthread_mutex_lock(&g.lock);
	g.eager = on;
	pthread_cond_broadcast(&g.quiet);
	pthread_mutex_unlock(&g.lock);
}

// The clock moves only by standin_advance.
API void standin_still(int on)
{
	pthread_mutex_lock(&g.lock);
	settle();
	g.still = on;
	unsettle();
	pthread_mutex_unlock(&g.lock);
}

// Lets time pass; all that is due by then has happened when it returns.
API void standin_advance(int64_t by)
{
	pthread_mutex_lock(&g.lock);
	settle();
	while (g.parked != g.workers)
		pthread_cond_wait(&g.quiet, &g.lock);
	advance(by);
	unsettle();
	pthread_mutex_unlock(&g.lock);
}

API int64_t standin_now(void)
{
	pthread_mutex_lock(&g.lock);
	ns now = g.now;
	pthread_mutex_unlock(&g.lock);
	return now;
}

// Returns when so many host threads are in a bounded wait.
API void standin_await_waiting(int n)
{
	pthread_mutex_lock(&g.lock);
	while (g.waiting < n || g.parked != g.workers)
		pthread_cond_wait(&g.quiet, &g.lock);
	pthread_mutex_unlock(&g.lock);
}

API int standin_fail(const char *call, int nth, int mode, int code, int64_t arg)
{
	pthread_mutex_lock(&g.lock);
	int ok = add_fault(call, nth, mode, code, arg);
	pthread_mutex_unlock(&g.lock);
	return ok;
}

API int standin_misuses(char *first, size_t size)
{
	pthread_mutex_lock(&g.lock);
	int n = g.misuses;
	snprintf(first, size, "%s", g.misuse);
	pthread_mutex_unlock(&g.lock);
	return n;
}

// How many streams, events, allocations and contexts are alive, and devices set.
API void standin_live(int counts[5])
{
	pthread_mutex_lock(&g.lock);
	counts[0] = live_streams();
	counts[1] = live_events();
	counts[2] = live_memory();
	counts[3] = live_contexts();
	counts[4] = open_devices();
	pthread_mutex_unlock(&g.lock);
}

API uint64_t standin_calls(void)
{
	pthread_mutex_lock(&g.lock);
	uint64_t n = g.calls;
	pthread_mutex_unlock(&g.lock);
	return n;
}

API uint64_t standin_context_sets(void)
{
	pthread_mutex_lock(&g.lock);
	uint64_t n = g.context_sets;
	pthread_mutex_unlock(&g.lock);
	return n;
}

// Leaves the calling thread without a context, or with the one given.
API void standin_set_current(handle context)
{
	pthread_mutex_lock(&g.lock);
	set_current(context);
	pthread_mutex_unlock(&g.lock);
}

// Gives the stream with the id a capture status.
API void standin_capture(int32_t id, uint32_t status)
{
	pthread_mutex_lock(&g.lock);
	streams[id].capture = status;
	pthread_mutex_unlock(&g.lock);
}

struct shout {
	int device, count;
	uint32_t thread;
};

static void *shout(void *arg)
{
	struct shout *s = arg;
	for (int i = 0; i < s->count; i++)
		call_back(s->device, 1, (uint32_t)i, s->thread, 507018);
	return NULL;
}

// Calls back from several threads at once, so many times each.
API void standin_shout(int device, int threads, int count)
{
	pthread_t t[16];
	struct shout s[16];
	for (int i = 0; i < threads && i < 16; i++) {
		s[i] = (struct shout){device, count, (uint32_t)i};
		if (pthread_create(&t[i], NULL, shout, &s[i]) != 0)
			abort();
	}
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(t[i], NULL);
}

// What the head of a stuck stream waits for: another stream, or -1.
static int obstacle(const struct entry *e, const char **why)
{
	int other = -1;
	if (e->kind == ENTRY_KERNEL && e->pair >= 0) {
		if (partner(e, &other)) {
			*why = "spins for its partner, which has not started";
			return other;
		}
		*why = e->cpu ? "spins for an AICore kernel that was not submitted" : "spins for an AICPU kernel that was not submitted";
		return -1;
	}
	*why = "waits for a record that was never made";
	for (int i = 0; i < stream_top; i++)
		for (struct entry *r = streams[i].head; r != NULL; r = r->next)
			if (r->kind == ENTRY_RECORD && r->event == e->event && r->gen == e->gen && r->seq == e->seq) {
				*why = "waits for a record that is queued";
				return i;
			}
	return -1;
}

static int in_circle(int i)
{
	int at = i;
	const char *why;
	for (int n = 0; n < stream_top; n++) {
		int next = obstacle(streams[at].head, &why);
		if (next < 0 || streams[next].head == NULL)
			return 0;
		if (next == i)
			return 1;
		at = next;
	}
	return 0;
}

// One line for each stream that is stuck.
API void standin_deadlock(char *out, size_t size)
{
	pthread_mutex_lock(&g.lock);
	settle();
	size_t at = 0;
	out[0] = 0;
	for (int i = 0; i < stream_top && at < size; i++) {
		struct stream *s = &streams[i];
		if (!s->running || s->head == NULL || s->due != NEVER)
			continue;
		if ((s->head->kind == ENTRY_WAIT && s->head->satisfied) || (s->head->kind == ENTRY_KERNEL && s->working))
			continue;
		const char *why;
		obstacle(s->head, &why);
		at += (size_t)snprintf(out + at, size - at, "%sstream %d: %s%s", at > 0 ? "\n" : "", s->id, why,
				       in_circle(i) ? "; in a circle" : "");
	}
	unsettle();
	pthread_mutex_unlock(&g.lock);
}

int aclrtQueryEventStatus(handle h, uint32_t *status);

// What n bare queries of an event take, in nanoseconds of the machine.
API int64_t standin_bare_queries(handle event, int64_t n)
{
	struct timespec a, b;
	uint32_t status;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int64_t i = 0; i < n; i++)
		aclrtQueryEventStatus(event, &status);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec);
}
