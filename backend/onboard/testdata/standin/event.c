// Events that re-record without a reset. The status is that of the latest
// record.

#include "standin.h"

struct event events[MAX_EVENTS];

struct event *find_event(handle h, int *code)
{
	int i = handle_index(h, KIND_EVENT, MAX_EVENTS);
	if (i < 0 || !events[i].live || events[i].gen != handle_gen(h)) {
		misuse(i < 0 ? "an event was named that never was" : "an event was used after it was destroyed");
		*code = INVALID_HANDLE;
		return NULL;
	}
	if (events[i].device != current_device()) {
		*code = STREAM_CONTEXT;
		return NULL;
	}
	return &events[i];
}

static int index_of(const struct event *e) { return (int)(e - events); }

void recorded(const struct entry *r)
{
	struct event *e = &events[r->event];
	if (e->gen != r->gen)
		return;
	e->pending--;
	if (r->seq == e->issued)
		e->done = 1;
	satisfy(r->event, r->gen, r->seq);
}

void waited(const struct entry *w)
{
	struct event *e = &events[w->event];
	if (e->gen == w->gen)
		e->waits--;
}

void drop_events(int device)
{
	for (int i = 0; i < MAX_EVENTS; i++)
		if (device < 0 || events[i].device == device) {
			events[i].live = 0;
			events[i].pending = events[i].waits = 0;
		}
}

int live_events(void)
{
	int n = 0;
	for (int i = 0; i < MAX_EVENTS; i++)
		n += events[i].live;
	return n;
}

API int aclrtCreateEventExWithFlag(handle *event, uint32_t flag)
{
	struct call c = {0};
	int code = begin(&c, "aclrtCreateEventExWithFlag", 1);
	if (code == OK && flag != 1)
		code = PARAM_INVALID;
	if (code != OK)
		return end(&c, code);
	for (int i = 0; i < MAX_EVENTS; i++) {
		struct event *e = &events[i];
		if (e->live || e->pending > 0 || e->waits > 0)
			continue;
		*e = (struct event){.gen = e->gen + 1, .live = 1, .device = current_device()};
		*event = make_handle(KIND_EVENT, i, e->gen);
		return end(&c, OK);
	}
	return end(&c, OUT_OF_MEMORY);
}

API int aclrtDestroyEvent(handle h)
{
	struct call c = {0};
	int code = begin(&c, "aclrtDestroyEvent", 1);
	struct event *e = code == OK ? find_event(h, &code) : NULL;
	if (e != NULL)
		e->live = 0; // its place is taken again when no entry names it any more
	return end(&c, code);
}

API int aclrtRecordEvent(handle event, handle stream)
{
	struct call c = {0};
	int code = begin(&c, "aclrtRecordEvent", 1);
	struct event *e = code == OK ? find_event(event, &code) : NULL;
	struct stream *s = code == OK ? find_stream(stream, &code) : NULL;
	if (e == NULL || s == NULL)
		return end(&c, code);
	struct entry r = {.kind = ENTRY_RECORD, .event = index_of(e), .gen = e->gen, .seq = e->issued + 1};
	code = enqueue(s, &r);
	if (code == OK) {
		e->issued++;
		e->pending++;
		e->done = 0;
	}
	return end(&c, code);
}

API int aclrtStreamWaitEvent(handle stream, handle event)
{
	struct call c = {0};
	int code = begin(&c, "aclrtStreamWaitEvent", 1);
	struct stream *s = code == OK ? find_stream(stream, &code) : NULL;
	struct event *e = code == OK ? find_event(event, &code) : NULL;
	if (e == NULL || s == NULL)
		return end(&c, code);
	struct entry w = {.kind = ENTRY_WAIT, .event = index_of(e), .gen = e->gen, .seq = e->issued, .satisfied = e->done};
	if (e->issued == 0) {
		w.seq = 1;
		w.satisfied = g.unrecorded_passes;
	}
	code = enqueue(s, &w);
	if (code == OK)
		e->waits++;
	return end(&c, code);
}

API int aclrtQueryEventStatus(handle h, uint32_t *status)
{
	struct call c = {.query = 1};
	int code = begin(&c, "aclrtQueryEventStatus", 1);
	struct event *e = code == OK ? find_event(h, &code) : NULL;
	if (e != NULL)
		*status = e->done ? 1 : 0;
	return end(&c, code);
}

API int aclrtSynchronizeEventWithTimeout(handle h, int32_t ms)
{
	struct call c = {0};
	int code = begin(&c, "aclrtSynchronizeEventWithTimeout", 1);
	struct event *e = code == OK ? find_event(h, &code) : NULL;
	if (e == NULL)
		return end(&c, code);
	if (ms <= 0)
		return end(&c, PARAM_INVALID);
	struct wait w = {.event = index_of(e), .gen = e->gen, .seq = e->issued, .satisfied = e->done, .device = e->device};
	if (e->issued == 0) {
		w.seq = 1;
		w.satisfied = g.unrecorded_passes;
	}
	unsettle();
	wait_begin(&w, ms);
	while (!w.expired && !w.aborted && (!w.satisfied || c.strike.hang))
		park();
	wait_end(&w);
	g.settling++; // for end
	if (w.aborted)
		return end(&c, TASK_ABORT);
	if (!w.satisfied || c.strike.hang)
		return end(&c, EVENT_SYNC_TIMEOUT);
	return end(&c, OK);
}
