// Virtual time, and who is busy.

#include "standin.h"

#include <string.h>

struct driver g = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.quiet = PTHREAD_COND_INITIALIZER,
	.unrecorded_passes = 1,
	.memory_limit = 64 << 20,
	.devices = 8,
	.incarnation = 1,
};

struct wait *waits;

// Everybody has to look again.
void stir(void)
{
	g.epoch++;
	g.parked = 0;
	pthread_cond_broadcast(&g.changed);
}

static ns earliest(ns a, ns b) { return a < b ? a : b; }

static ns next_deadline(void)
{
	ns at = NEVER;
	for (struct wait *w = waits; w != NULL; w = w->next)
		if (!w->expired)
			at = earliest(at, w->deadline);
	return at;
}

// Moves the clock to the next thing due, if that is not beyond the limit. What
// is due for the device comes before the deadline of a host that waits for it.
static int step(ns limit)
{
	ns due = earliest(next_stream_due(), next_notice_due());
	ns deadline = next_deadline();
	if (due != NEVER && due <= deadline && due <= limit) {
		if (due > g.now)
			g.now = due;
	} else if (deadline != NEVER && deadline <= limit) {
		if (deadline > g.now)
			g.now = deadline;
		for (struct wait *w = waits; w != NULL; w = w->next)
			if (w->deadline <= g.now)
				w->expired = 1;
	} else {
		return 0;
	}
	stir();
	return 1;
}

static void all_parked(void)
{
	pthread_cond_broadcast(&g.quiet);
	if (g.settling == 0 && g.waiting > 0 && !g.still)
		step(NEVER);
}

// Called by a worker that found nothing to do: waits until something changed.
void park(void)
{
	uint64_t seen = g.epoch;
	g.parked++;
	if (g.parked == g.workers)
		all_parked();
	while (g.epoch == seen)
		pthread_cond_wait(&g.changed, &g.lock);
}

void join_workers(void) { g.workers++; }

void leave_workers(void)
{
	g.workers--;
	if (g.parked == g.workers)
		all_parked();
}

// Lets everything happen that is due now. Until unsettle the clock stands.
void settle(void)
{
	g.settling++;
	while (!g.eager && g.parked != g.workers)
		pthread_cond_wait(&g.quiet, &g.lock);
}

void unsettle(void)
{
	g.settling--;
	if (g.parked == g.workers)
		all_parked();
}

// Lets time pass. Called between settle and unsettle.
void advance(ns by)
{
	ns target = by > NEVER - g.now ? NEVER : g.now + by;
	while (step(target))
		while (g.parked != g.workers)
			pthread_cond_wait(&g.quiet, &g.lock);
	if (target > g.now)
		g.now = target;
}

// A host thread begins a bounded wait; it is a worker until it ends.
void wait_begin(struct wait *w, int32_t ms)
{
	w->deadline = g.now + (ns)ms * 1000000;
	w->next = waits;
	waits = w;
	g.waiting++;
	join_workers();
}

void wait_end(struct wait *w)
{
	for (struct wait **p = &waits; *p != NULL; p = &(*p)->next)
		if (*p == w) {
			*p = w->next;
			break;
		}
	g.waiting--;
	leave_workers();
}
