// The stand-in driver: a shared library with the runtime's binary interface,
// whose streams are threads. This header is its inside; what tests call to
// control it is in control.c.
//
// One lock guards everything. Time is virtual: a thread that has nothing to do
// parks, and when all have parked and a host thread is in a bounded wait, the
// clock moves to the next instant at which something is due. So nothing ever
// sleeps, and what a test sees does not depend on the machine's speed. A call
// that does not wait first lets everything happen that is due at the present
// instant, unless the driver is told to be eager.

#ifndef STANDIN_H
#define STANDIN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef int64_t ns;
#define NEVER INT64_MAX

typedef void *handle;

enum {
	OK = 0,
	UNINITIALIZED = 100001,
	REPEATED_INIT = 100002,
	REPEATED_FINALIZE = 100037,
	PARAM_INVALID = 107000,
	INVALID_DEVICE = 107001,
	CONTEXT_NULL = 107002,
	STREAM_CONTEXT = 107003,
	INVALID_HANDLE = 107017,
	TASK_ABORT = 107022,
	STREAM_CAPTURED = 107027,
	NOT_SUPPORTED = 207000,
	OUT_OF_MEMORY = 207001,
	STREAM_NOT_COMPLETE = 507004,
	STREAM_SYNC_TIMEOUT = 507046,
	EVENT_SYNC_TIMEOUT = 507047,
};

enum { MAX_STREAMS = 4096, MAX_EVENTS = 8192, MAX_MEMORY = 8192, MAX_CONTEXTS = 1024, MAX_DEVICES = 64, MAX_FUNCTIONS = 4096 };
enum { KIND_CONTEXT = 1, KIND_STREAM, KIND_EVENT, KIND_IMAGE, KIND_FUNCTION };

// A handle is a number, never an address: kind, place, generation of the place.
handle make_handle(int kind, int index, uint32_t gen);
int handle_index(handle h, int kind, int limit); // -1 if it is none
uint32_t handle_gen(handle h);

// The state that everything shares; lock guards it.
struct driver {
	pthread_mutex_t lock;
	pthread_cond_t changed; // something changed: look again
	pthread_cond_t quiet;	// all have parked
	ns now;
	uint64_t epoch; // changes so far
	int workers;	// threads that look for themselves
	int parked;	// of these, have looked since the last change and found nothing
	int waiting;	// host threads in a bounded wait; they are workers too
	int settling;	// host threads that let things settle
	int eager;
	int still; // no deadline passes by itself
	ns query_time, notice_time, copy_time;
	int unrecorded_passes;
	uint64_t memory_limit, allocated;
	int devices;
	uint32_t incarnation;
	int initialized;
	uint64_t calls;	       // of the interface
	uint64_t context_sets; // of these, SetCurrentContext
	int misuses;	       // handles used or destroyed after they were destroyed, memory after its free
	char misuse[256];      // the first
};
extern struct driver g;

// clock.c
void stir(void);
void park(void);
void join_workers(void);
void leave_workers(void);
void settle(void);
void unsettle(void);
void advance(ns by);

struct wait {
	struct wait *next;
	ns deadline;
	int expired, aborted, device;
	// for an event: which record of which
	int event;
	uint32_t gen, seq;
	int satisfied;
};
extern struct wait *waits;
void wait_begin(struct wait *w, int32_t ms);
void wait_end(struct wait *w);
ns next_stream_due(void);
ns next_notice_due(void);

// fault.c
enum { BEFORE = 1, AFTER, HANG, FATAL, LATE, LOST, SKIP };

// A call that is to say success and do nothing.
enum { SKIPPED = -1 };
struct strike {
	int before, after, hang, fatal, lost;
	ns late;
};
struct strike strike(const char *call);
int add_fault(const char *call, int nth, int mode, int code, ns arg);
void clear_faults(void);
void misuse(const char *what);

// call.c: what every call begins and ends with.
struct call {
	const char *name;
	struct strike strike;
	int query;
};
int begin(struct call *c, const char *name, int needs_context);
int end(struct call *c, int code);
int note(const char *name, int code);
int last_error(int clear);

// context.c
struct context {
	uint32_t gen;
	int live, device, made; // made: by CreateContext
};
int current_context(void);	// index, or -1
int current_device(void);	// of the current context
int context_device(int index);
void set_current(handle h);
void drop_contexts(int device);
int live_contexts(void);
int open_devices(void);
void forget_contexts(void);

// stream.c
enum { ENTRY_KERNEL = 1, ENTRY_RECORD, ENTRY_WAIT, ENTRY_COPY };

struct entry {
	struct entry *next;
	int kind, started;
	// record, wait
	int event;
	uint32_t gen, seq;
	int satisfied;
	// copy
	void *dst;
	const void *src;
	size_t size;
	uint64_t dst_serial, src_serial;
	ns due;
	// kernel
	int function, cpu, pair, exit, hang, lost;
	void *args;
	uint64_t args_serial;
	ns notice;
	uint32_t task;
};

struct stream {
	uint32_t gen;
	int live;    // the handle is
	int running; // the thread is
	int killed;
	int context, device, id;
	struct entry *head, *tail;
	int length;
	uint32_t tasks;
	int working, flagged;
	ns due, flag_due;
	int fault, error; // a kernel's, not seen yet; and seen, sticky
	uint32_t capture;
};
extern struct stream streams[MAX_STREAMS];
extern int stream_top; // places that were ever taken

struct stream *find_stream(handle h, int *code);
int enqueue(struct stream *s, const struct entry *e);
void kill_streams(int device);
int running_streams(void);
int live_streams(void);
void satisfy(int event, uint32_t gen, uint32_t seq);

// event.c
struct event {
	uint32_t gen;
	int live, device;
	uint32_t issued, pending, waits;
	int done;
};
extern struct event events[MAX_EVENTS];
struct event *find_event(handle h, int *code);
void recorded(const struct entry *e);
void waited(const struct entry *e);
void drop_events(int device);
int live_events(void);

// memory.c
uint64_t memory_at(const void *p, size_t size); // serial of what is alive there, or 0
void drop_memory(int device);
int live_memory(void);

// kernel.c
struct function {
	char name[48];
	int cpu, paired, spin, flag, exit;
	ns duration, flag_after;
	struct {
		int when, size;
		uint64_t offset, value;
	} stores[8];
	int count;
};
extern struct function functions[MAX_FUNCTIONS];
int join_pair(int cpu, void *args, int stream);
void start_kernel(struct stream *s, struct entry *e);
int met(const struct entry *e);
void publish(struct entry *e);
void exit_kernel(struct stream *s, struct entry *e);
void drop_images(int device);
void forget_kernels(void);
void forget_pairs(int device); // -1: of all
int partner(const struct entry *e, int *stream);

// notice.c
void post(int device, int stream, uint32_t task, int code, ns due);
void forget_notices(void);
void call_back(int device, int stream, uint32_t task, uint32_t thread, int code);

#endif
