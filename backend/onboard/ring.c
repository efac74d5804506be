// Exception notices. The runtime calls back on a thread of its own; the
// callback copies five numbers into the ring of the device that they name and
// returns. It takes no lock, waits for nobody and never enters Go.
//
// Several threads may call back at once, and one at a time takes. A cell's
// turn says whose it is: at position p it is p when the cell is free, p+1 when
// it is filled.

#include "acl.h"

#include <stdatomic.h>
#include <string.h>

typedef struct {
	_Atomic uint64_t turn;
	rf_notice notice;
} cell;

typedef struct {
	_Atomic uint64_t head; // next to take
	_Atomic uint64_t tail; // next to fill
	_Atomic uint64_t dropped;
	_Atomic uint32_t limit; // notices kept; 0: nobody is there to take them
	_Atomic uint32_t ready; // the turns are set
	cell cells[RF_RING];
} ring;

// Never freed: a callback that is late may come at any time.
static ring rings[RF_DEVICES];
static _Atomic uint64_t strays;
static rf_acl *_Atomic source;

int rf_can_watch(const rf_acl *acl)
{
	return (acl->aclrtExceptionInfoCallbackRegister != NULL || acl->aclrtSetExceptionInfoCallback != NULL) &&
	       acl->aclrtGetTaskIdFromExceptionInfo != NULL && acl->aclrtGetStreamIdFromExceptionInfo != NULL &&
	       acl->aclrtGetThreadIdFromExceptionInfo != NULL && acl->aclrtGetDeviceIdFromExceptionInfo != NULL &&
	       acl->aclrtGetErrorCodeFromExceptionInfo != NULL;
}

void rf_ring_acl(rf_acl *acl) { atomic_store(&source, acl); }

// What is left from before belongs to an earlier user of the device.
void rf_ring_open(int32_t device, uint32_t limit)
{
	ring *r = &rings[device];
	if (!atomic_load(&r->ready)) {
		for (uint64_t i = 0; i < RF_RING; i++)
			atomic_store_explicit(&r->cells[i].turn, i, memory_order_relaxed);
		atomic_store(&r->ready, 1);
	}
	while (rf_ring_take(device, RF_BATCH).count > 0) {
	}
	atomic_store(&r->dropped, 0);
	atomic_store(&r->limit, limit);
}

void rf_ring_close(int32_t device) { atomic_store(&rings[device].limit, 0); }

static void put(ring *r, const rf_notice *n)
{
	uint64_t at = atomic_load(&r->tail);
	for (;;) {
		int64_t held = (int64_t)(at - atomic_load(&r->head));
		if (held >= (int64_t)atomic_load(&r->limit))
			break;
		cell *c = &r->cells[at % RF_RING];
		uint64_t turn = atomic_load_explicit(&c->turn, memory_order_acquire);
		if (held < 0 || turn > at) {
			at = atomic_load(&r->tail); // others were here meanwhile
			continue;
		}
		if (turn < at)
			break; // full
		if (atomic_compare_exchange_weak(&r->tail, &at, at + 1)) {
			c->notice = *n;
			atomic_store_explicit(&c->turn, at + 1, memory_order_release);
			return;
		}
	}
	atomic_fetch_add(&r->dropped, 1);
}

// One taker at a time.
rf_batch rf_ring_take(int32_t device, int32_t want)
{
	ring *r = &rings[device];
	rf_batch b;
	memset(&b, 0, sizeof b);
	uint64_t at = atomic_load(&r->head);
	while (b.count < want && b.count < RF_BATCH) {
		cell *c = &r->cells[at % RF_RING];
		if (atomic_load_explicit(&c->turn, memory_order_acquire) != at + 1)
			break;
		b.notices[b.count++] = c->notice;
		atomic_store_explicit(&c->turn, at + RF_RING, memory_order_release);
		atomic_store(&r->head, ++at);
	}
	b.dropped = atomic_exchange(&r->dropped, 0);
	return b;
}

uint64_t rf_ring_strays(void) { return atomic_load(&strays); }

void rf_on_exception(void *info)
{
	rf_acl *acl = atomic_load(&source);
	if (acl == NULL || info == NULL)
		return;
	rf_notice n = {
		.device = (int32_t)acl->aclrtGetDeviceIdFromExceptionInfo(info),
		.stream = (int32_t)acl->aclrtGetStreamIdFromExceptionInfo(info),
		.task = acl->aclrtGetTaskIdFromExceptionInfo(info),
		.thread = acl->aclrtGetThreadIdFromExceptionInfo(info),
		.code = (int32_t)acl->aclrtGetErrorCodeFromExceptionInfo(info),
	};
	if (n.device < 0 || n.device >= RF_DEVICES || atomic_load(&rings[n.device].limit) == 0)
		atomic_fetch_add(&strays, 1);
	else
		put(&rings[n.device], &n);
}
