// Initialisation, devices, contexts.

#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef STANDIN_MAJOR
#define STANDIN_MAJOR 1
#endif

static struct context contexts[MAX_CONTEXTS];
static int references[MAX_DEVICES]; // SetDevice without ResetDevice
static int default_context[MAX_DEVICES];

static __thread struct {
	uint32_t incarnation;
	handle current;
} thread;

static int lent(void);

int current_context(void)
{
	int i = handle_index(thread.current, KIND_CONTEXT, MAX_CONTEXTS);
	if (thread.incarnation != g.incarnation || i < 0 || !contexts[i].live || contexts[i].gen != handle_gen(thread.current))
		return lent();
	return i;
}

int context_device(int index) { return contexts[index].device; }
int current_device(void) { return contexts[current_context()].device; }

void set_current(handle h)
{
	thread.incarnation = g.incarnation;
	thread.current = h;
}

static int make_context(int device, int made)
{
	for (int i = 0; i < MAX_CONTEXTS; i++) {
		if (contexts[i].live)
			continue;
		contexts[i].gen++;
		contexts[i].live = 1;
		contexts[i].device = device;
		contexts[i].made = made;
		return i;
	}
	return -1;
}

static handle context_handle(int i) { return make_handle(KIND_CONTEXT, i, contexts[i].gen); }

int live_contexts(void)
{
	int n = 0;
	for (int i = 0; i < MAX_CONTEXTS; i++)
		n += contexts[i].live && contexts[i].made;
	return n;
}

// How often a device was set and not reset.
int open_devices(void)
{
	int n = 0;
	for (int i = 0; i < MAX_DEVICES; i++)
		n += references[i];
	return n;
}

void drop_contexts(int device)
{
	for (int i = 0; i < MAX_CONTEXTS; i++)
		if (contexts[i].device == device)
			contexts[i].live = 0;
	default_context[device] = 0;
}

void forget_contexts(void)
{
	for (int i = 0; i < MAX_CONTEXTS; i++)
		contexts[i].live = 0;
	memset(references, 0, sizeof references);
	memset(default_context, 0, sizeof default_context);
	g.initialized = 0;
}

// Takes everything from a device. Notices on their way still arrive.
static void release(int device)
{
	kill_streams(device);
	for (struct wait *w = waits; w != NULL; w = w->next)
		if (w->device == device)
			w->aborted = 1;
	drop_events(device);
	drop_memory(device);
	drop_images(device);
	drop_contexts(device);
	references[device] = 0;
	stir();
}

// STANDIN_LENDS=device makes a context of the device that is current on every
// thread that has no other, as in a process whose host lends one.
static int lent(void)
{
	static int context;
	static uint32_t incarnation;
	const char *device = getenv("STANDIN_LENDS");
	if (device == NULL || *device == 0)
		return -1;
	if (incarnation != g.incarnation) {
		incarnation = g.incarnation;
		g.initialized = 1;
		references[atoi(device)]++;
		context = make_context(atoi(device), 1);
	}
	return context;
}

API int aclInit(const char *config)
{
	(void)config;
	struct call c = {0};
	int code = begin(&c, "aclInit", 0);
	if (code == OK && g.initialized)
		code = REPEATED_INIT;
	else if (code == OK)
		g.initialized = 1;
	return end(&c, code);
}

API int aclFinalize(void)
{
	struct call c = {0};
	int code = begin(&c, "aclFinalize", 0);
	if (code == OK && !g.initialized)
		code = REPEATED_FINALIZE;
	else if (code == OK)
		g.initialized = 0;
	return end(&c, code);
}

API int aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
	struct call c = {0};
	int code = begin(&c, "aclrtGetVersion", 0);
	*major = STANDIN_MAJOR;
	*minor = 14;
	*patch = 0;
	return end(&c, code);
}

struct package_version {
	char version[128];
	char rest[384];
};

API int aclsysGetCANNVersion(int name, struct package_version *v)
{
	struct call c = {0};
	int code = begin(&c, "aclsysGetCANNVersion", 0);
	(void)name;
	memset(v, 0, sizeof *v);
	snprintf(v->version, sizeof v->version, "stand-in");
	return end(&c, code);
}

API const char *aclrtGetSocName(void) { return "Standin910"; }

API int aclrtGetDeviceCount(uint32_t *count)
{
	struct call c = {0};
	int code = begin(&c, "aclrtGetDeviceCount", 0);
	*count = (uint32_t)g.devices;
	return end(&c, code);
}

API int aclrtSetDevice(int32_t device)
{
	struct call c = {0};
	int code = begin(&c, "aclrtSetDevice", 0);
	if (code == OK && !g.initialized)
		code = UNINITIALIZED;
	if (code == OK && (device < 0 || device >= g.devices))
		code = INVALID_DEVICE;
	if (code == OK) {
		references[device]++;
		if (default_context[device] == 0)
			default_context[device] = make_context(device, 0) + 1;
		set_current(context_handle(default_context[device] - 1));
	}
	return end(&c, code);
}

API int aclrtGetDevice(int32_t *device)
{
	struct call c = {0};
	int code = begin(&c, "aclrtGetDevice", 1);
	if (code == OK)
		*device = current_device();
	return end(&c, code);
}

API int aclrtResetDevice(int32_t device)
{
	struct call c = {0};
	int code = begin(&c, "aclrtResetDevice", 0);
	if (code == OK && (device < 0 || device >= g.devices || references[device] == 0))
		code = INVALID_DEVICE;
	if (code == OK && --references[device] == 0)
		release(device);
	return end(&c, code);
}

API int aclrtResetDeviceForce(int32_t device)
{
	struct call c = {0};
	int code = begin(&c, "aclrtResetDeviceForce", 0);
	if (code == OK && (device < 0 || device >= g.devices || references[device] == 0))
		code = INVALID_DEVICE;
	if (code == OK)
		release(device);
	return end(&c, code);
}

API int aclrtCreateContext(handle *context, int32_t device)
{
	struct call c = {0};
	int code = begin(&c, "aclrtCreateContext", 0);
	if (code == OK && (device < 0 || device >= g.devices || references[device] == 0))
		code = INVALID_DEVICE;
	if (code == OK) {
		*context = context_handle(make_context(device, 1));
		set_current(*context);
	}
	return end(&c, code);
}

API int aclrtDestroyContext(handle context)
{
	struct call c = {0};
	int code = begin(&c, "aclrtDestroyContext", 0);
	int i = handle_index(context, KIND_CONTEXT, MAX_CONTEXTS);
	if (code == OK && (i < 0 || !contexts[i].live || contexts[i].gen != handle_gen(context) || !contexts[i].made)) {
		misuse("a context was destroyed that is not there");
		code = PARAM_INVALID;
	}
	if (code == OK)
		contexts[i].live = 0;
	return end(&c, code);
}

// With no context current the answer is a failure, and the thread's last error.
API int aclrtGetCurrentContext(handle *context)
{
	pthread_mutex_lock(&g.lock);
	g.calls++;
	int i = current_context();
	int code = strike("aclrtGetCurrentContext").before;
	if (code == OK && i < 0)
		code = CONTEXT_NULL;
	if (code == OK)
		*context = context_handle(i);
	note("aclrtGetCurrentContext", code);
	pthread_mutex_unlock(&g.lock);
	return code;
}

API int aclrtSetCurrentContext(handle context)
{
	struct call c = {0};
	int code = begin(&c, "aclrtSetCurrentContext", 0);
	g.context_sets++;
	int i = handle_index(context, KIND_CONTEXT, MAX_CONTEXTS);
	if (code == OK && (i < 0 || !contexts[i].live || contexts[i].gen != handle_gen(context)))
		code = PARAM_INVALID;
	if (code == OK)
		set_current(context);
	return end(&c, code);
}
