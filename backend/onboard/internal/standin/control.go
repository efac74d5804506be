//go:build cgo && linux

package standin

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef uintptr_t handle;

#define FUNCTIONS(X) \
	X(standin_sanitizer, const char *, (void)) \
	X(standin_restart, void, (void)) \
	X(standin_configure, void, (int64_t, int64_t, int64_t, int, uint64_t, int)) \
	X(standin_eager, void, (int)) \
	X(standin_still, void, (int)) \
	X(standin_advance, void, (int64_t)) \
	X(standin_now, int64_t, (void)) \
	X(standin_await_waiting, void, (int)) \
	X(standin_fail, int, (const char *, int, int, int, int64_t)) \
	X(standin_misuses, int, (char *, size_t)) \
	X(standin_live, void, (int *)) \
	X(standin_calls, uint64_t, (void)) \
	X(standin_context_sets, uint64_t, (void)) \
	X(standin_set_current, void, (handle)) \
	X(standin_capture, void, (int32_t, uint32_t)) \
	X(standin_shout, void, (int, int, int)) \
	X(standin_deadlock, void, (char *, size_t)) \
	X(standin_bare_queries, int64_t, (handle, int64_t)) \
	X(aclInit, int, (const char *)) \
	X(aclrtSetDevice, int, (int32_t)) \
	X(aclrtCreateContext, int, (handle *, int32_t)) \
	X(aclrtGetCurrentContext, int, (handle *)) \
	X(aclrtSetCurrentContext, int, (handle)) \
	X(aclrtCreateEventExWithFlag, int, (handle *, uint32_t)) \
	X(aclrtQueryEventStatus, int, (handle, uint32_t *)) \
	X(aclrtPeekAtLastError, int, (int32_t))

typedef struct {
#define FIELD(name, result, params) result (*name) params;
	FUNCTIONS(FIELD)
} control;

static struct bound {
	struct bound *next;
	control c;
} *all; // never freed, like the driver itself, and reachable from here

static control *bind(const char *path, const char **missing)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		*missing = dlerror();
		return NULL;
	}
	struct bound *b = calloc(1, sizeof *b);
	if (b == NULL)
		abort();
	do
		b->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
	while (!__sync_bool_compare_and_swap(&all, b->next, b));
	control *c = &b->c;
#define LOOK(name, result, params) \
	if ((c->name = (result (*) params)dlsym(library, #name)) == NULL) { *missing = #name; return NULL; }
	FUNCTIONS(LOOK)
	return c;
}

static const char *sanitizer(control *c) { return c->standin_sanitizer(); }
static void restart(control *c) { c->standin_restart(); }
static void configure(control *c, int64_t query, int64_t copy, int64_t notice, int passes, uint64_t limit, int devices)
{
	c->standin_configure(query, copy, notice, passes, limit, devices);
}
static void eager(control *c, int on) { c->standin_eager(on); }
static void still(control *c, int on) { c->standin_still(on); }
static void advance(control *c, int64_t by) { c->standin_advance(by); }
static int64_t now(control *c) { return c->standin_now(); }
static void await_waiting(control *c, int n) { c->standin_await_waiting(n); }
static int fail(control *c, const char *call, int nth, int mode, int code, int64_t arg)
{
	return c->standin_fail(call, nth, mode, code, arg);
}

typedef struct { int count; char first[256]; } misuse;
static misuse misuses(control *c)
{
	misuse m;
	m.count = c->standin_misuses(m.first, sizeof m.first);
	return m;
}

typedef struct { int of[5]; } counts;
static counts live(control *c)
{
	counts n;
	c->standin_live(n.of);
	return n;
}

static uint64_t calls(control *c) { return c->standin_calls(); }
static uint64_t context_sets(control *c) { return c->standin_context_sets(); }
static void set_current(control *c, handle h) { c->standin_set_current(h); }
static void capture(control *c, int32_t id, uint32_t status) { c->standin_capture(id, status); }
static void shout(control *c, int device, int threads, int count) { c->standin_shout(device, threads, count); }

typedef struct { char text[4096]; } words;
static words deadlock(control *c)
{
	words w;
	c->standin_deadlock(w.text, sizeof w.text);
	return w;
}

typedef struct { int code; handle value; } made;
static made lend(control *c, int32_t device)
{
	made m = {c->aclInit(NULL), 0};
	if (m.code == 100002)
		m.code = 0;
	if (m.code == 0)
		m.code = c->aclrtSetDevice(device);
	if (m.code == 0)
		m.code = c->aclrtCreateContext(&m.value, device);
	return m;
}
static handle current(control *c)
{
	handle h = 0;
	return c->aclrtGetCurrentContext(&h) == 0 ? h : 0;
}
static int make_current(control *c, handle h) { return c->aclrtSetCurrentContext(h); }
static int last_error(control *c) { return c->aclrtPeekAtLastError(0); }

static int64_t bare_queries(control *c, int64_t n)
{
	static handle e;
	uint32_t status;
	if (c->aclrtQueryEventStatus(e, &status) != 0)
		c->aclrtCreateEventExWithFlag(&e, 1);
	return c->standin_bare_queries(e, n);
}
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// Driver is a loaded stand-in driver. Its methods are safe for concurrent use.
type Driver struct{ c *C.control }

// Load loads a driver that [Build] built; loading it twice is the same driver.
func Load(path string) (*Driver, error) {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	var missing *C.char
	c := C.bind(p, &missing)
	if c == nil {
		return nil, fmt.Errorf("standin: %s: %s", path, C.GoString(missing))
	}
	return &Driver{c}, nil
}

// Sanitizer says what the driver is compiled with.
func (d *Driver) Sanitizer() string { return C.GoString(C.sanitizer(d.c)) }

// Restart makes it a driver that was just loaded. Threads of its streams have
// ended when it returns.
func (d *Driver) Restart() { C.restart(d.c) }

// Settings are what [Driver.Configure] sets. A fresh driver has no delays, lets
// unrecorded waits pass, and has 64 MiB and 8 devices.
type Settings struct {
	QueryTime, CopyTime, NoticeTime time.Duration
	// UnrecordedPasses lets a wait for an event that was never recorded pass.
	UnrecordedPasses bool
	// MemoryLimit bounds the live allocations, in bytes.
	MemoryLimit uint64
	Devices     int
}

// Configure sets what the driver is like.
func (d *Driver) Configure(s Settings) {
	C.configure(d.c, C.int64_t(s.QueryTime), C.int64_t(s.CopyTime), C.int64_t(s.NoticeTime), flag(s.UnrecordedPasses),
		C.uint64_t(s.MemoryLimit), C.int(s.Devices))
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// Eager lets calls not wait for what is due before them.
func (d *Driver) Eager(on bool) { C.eager(d.c, flag(on)) }

// Still stops the clock but for [Driver.Advance].
func (d *Driver) Still(on bool) { C.still(d.c, flag(on)) }

// Advance lets time pass; what is due by then has happened when it returns.
func (d *Driver) Advance(by time.Duration) { C.advance(d.c, C.int64_t(by)) }

// Now returns the driver's time.
func (d *Driver) Now() time.Duration { return time.Duration(C.now(d.c)) }

// AwaitWaiting returns when n host threads are in a bounded wait and nothing
// moves.
func (d *Driver) AwaitWaiting(n int) { C.await_waiting(d.c, C.int(n)) }

// Mode is what a fault does to a call.
type Mode int

// The modes. Fatal, Late and Lost are for a launch: the kernel's status, the
// delay of its notice, and that there is none.
const (
	Before Mode = iota + 1 // fails without effect
	After                  // takes effect and fails
	Hang                   // a wait that is never satisfied, a kernel that never returns
	Fatal
	Late
	Lost
	Skip // a call that says success and does nothing
)

// Fail strikes the nth next call of a name.
func (d *Driver) Fail(call string, nth int, m Mode, code int32, arg time.Duration) {
	name := C.CString(call)
	defer C.free(unsafe.Pointer(name))
	if C.fail(d.c, name, C.int(nth), C.int(m), C.int(code), C.int64_t(arg)) == 0 {
		panic("standin: too many faults")
	}
}

// Misuses counts uses of handles and memory after their end, and tells the first.
func (d *Driver) Misuses() (int, string) {
	m := C.misuses(d.c)
	return int(m.count), C.GoString(&m.first[0])
}

// Live is what is alive in a driver; Devices were set and not reset.
type Live struct{ Streams, Events, Memory, Contexts, Devices int }

// Live counts what is alive. Contexts that come with a device do not count.
func (d *Driver) Live() Live {
	n := C.live(d.c)
	return Live{int(n.of[0]), int(n.of[1]), int(n.of[2]), int(n.of[3]), int(n.of[4])}
}

// Calls counts the calls of the interface since the last restart.
func (d *Driver) Calls() uint64 { return uint64(C.calls(d.c)) }

// ContextSets counts those that made a context current.
func (d *Driver) ContextSets() uint64 { return uint64(C.context_sets(d.c)) }

// Lend initialises the driver and makes a context of a device, which is then
// current on the calling thread, as a host does that lends it.
func (d *Driver) Lend(device int32) (uintptr, error) {
	m := C.lend(d.c, C.int32_t(device))
	if m.code != 0 {
		return 0, fmt.Errorf("standin: lending a context: code %d", m.code)
	}
	return uintptr(m.value), nil
}

// Current returns the calling thread's context; 0 if none.
func (d *Driver) Current() uintptr { return uintptr(C.current(d.c)) }

// MakeCurrent makes a context current on the calling thread.
func (d *Driver) MakeCurrent(context uintptr) error {
	if code := C.make_current(d.c, C.handle(context)); code != 0 {
		return fmt.Errorf("standin: making a context current: code %d", code)
	}
	return nil
}

// Unset leaves the calling thread without a context.
func (d *Driver) Unset() { C.set_current(d.c, 0) }

// LastError returns the calling thread's last error.
func (d *Driver) LastError() int32 { return int32(C.last_error(d.c)) }

// Capture gives the stream of an id a capture status.
func (d *Driver) Capture(id int32, status uint32) { C.capture(d.c, C.int32_t(id), C.uint32_t(status)) }

// Shout calls back from several threads at once, count times each. The task of a
// notice is its number on its thread.
func (d *Driver) Shout(device int32, threads, count int) {
	C.shout(d.c, C.int(device), C.int(threads), C.int(count))
}

// Deadlock tells what can never move by itself, or "".
func (d *Driver) Deadlock() string {
	w := C.deadlock(d.c)
	return C.GoString(&w.text[0])
}

// BareQueries makes n queries of an event from C, and returns what they took by
// the machine's clock. A context must be current.
func (d *Driver) BareQueries(n int) time.Duration {
	return time.Duration(C.bare_queries(d.c, C.int64_t(n)))
}
