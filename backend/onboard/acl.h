// What this package uses of the Ascend runtime, declared by hand: no header of
// it is needed to build. Handles are opaque numbers here, whatever a runtime
// makes of them; only memory is a pointer.

#ifndef RUNFENCE_ONBOARD_ACL_H
#define RUNFENCE_ONBOARD_ACL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t rf_handle;

// Numbers that the runtime gives to things.
enum {
	RF_OK = 0,
	RF_ACL_REPEATED_INIT = 100002,
	RF_PARAM_INVALID = 107000,
	RF_CONTEXT_NULL = 107002,
	RF_STREAM_CONTEXT = 107003,
	RF_NOT_SUPPORTED = 207000,
	RF_STREAM_NOT_COMPLETE = 507004,

	RF_THREAD_LEVEL = 0,
	RF_EVENT_SYNC = 1,
	RF_EVENT_RECORDED = 1,
	RF_EVENT_NOT_RECORDED = 0,
	RF_STREAM_COMPLETE = 0,
	RF_STREAM_BUSY = 1,
	RF_HUGE_FIRST = 0,
	RF_OPT_CPU_KERNEL_MODE = 3,
	RF_PACKAGE_CANN = 0,
};

// An option of loading a kernel image, and a list of them.
typedef struct {
	int32_t type;
	union {
		int32_t cpu_kernel_mode;
		uint32_t reserved[4];
	} value;
} rf_load_option;

typedef struct {
	rf_load_option *options;
	size_t count;
} rf_load_options;

// What a package says of its version. Only the first text is used.
typedef struct {
	char version[128];
	char rest[384];
} rf_package_version;

typedef void (*rf_exception_callback)(void *info);

// Whether a function can be done without. One that is RF_OR_NEXT is needed
// unless the one after it is there.
enum { RF_REQUIRED, RF_OPTIONAL, RF_OR_NEXT };

// The functions used: name, need, result, parameters.
#define RF_FUNCTIONS(X)                                                                                            \
	X(aclInit, RF_REQUIRED, int, (const char *))                                                               \
	X(aclFinalize, RF_REQUIRED, int, (void))                                                                   \
	X(aclrtGetVersion, RF_REQUIRED, int, (int32_t *, int32_t *, int32_t *))                                    \
	X(aclsysGetCANNVersion, RF_OPTIONAL, int, (int32_t, rf_package_version *))                                 \
	X(aclrtGetSocName, RF_OPTIONAL, const char *, (void))                                                      \
	X(aclGetRecentErrMsg, RF_OPTIONAL, const char *, (void))                                                   \
	X(aclrtPeekAtLastError, RF_REQUIRED, int, (int32_t))                                                       \
	X(aclrtGetLastError, RF_OPTIONAL, int, (int32_t))                                                          \
	X(aclrtGetDeviceCount, RF_REQUIRED, int, (uint32_t *))                                                     \
	X(aclrtGetDevice, RF_OPTIONAL, int, (int32_t *))                                                           \
	X(aclrtSetDevice, RF_REQUIRED, int, (int32_t))                                                             \
	X(aclrtResetDevice, RF_REQUIRED, int, (int32_t))                                                           \
	X(aclrtResetDeviceForce, RF_OPTIONAL, int, (int32_t))                                                      \
	X(aclrtCreateContext, RF_REQUIRED, int, (rf_handle *, int32_t))                                            \
	X(aclrtDestroyContext, RF_REQUIRED, int, (rf_handle))                                                      \
	X(aclrtGetCurrentContext, RF_REQUIRED, int, (rf_handle *))                                                 \
	X(aclrtSetCurrentContext, RF_REQUIRED, int, (rf_handle))                                                   \
	X(aclrtCreateStreamWithConfig, RF_OR_NEXT, int, (rf_handle *, uint32_t, uint32_t))                         \
	X(aclrtCreateStream, RF_OPTIONAL, int, (rf_handle *))                                                      \
	X(aclrtDestroyStream, RF_REQUIRED, int, (rf_handle))                                                       \
	X(aclrtStreamGetId, RF_OPTIONAL, int, (rf_handle, int32_t *))                                              \
	X(aclrtStreamQuery, RF_OR_NEXT, int, (rf_handle, uint32_t *))                                              \
	X(rtStreamQuery, RF_OPTIONAL, int, (rf_handle))                                                            \
	X(aclrtSynchronizeStreamWithTimeout, RF_REQUIRED, int, (rf_handle, int32_t))                               \
	X(aclmdlRICaptureGetInfo, RF_OPTIONAL, int, (rf_handle, uint32_t *, rf_handle *))                          \
	X(aclrtCreateEventExWithFlag, RF_REQUIRED, int, (rf_handle *, uint32_t))                                   \
	X(aclrtRecordEvent, RF_REQUIRED, int, (rf_handle, rf_handle))                                              \
	X(aclrtQueryEventStatus, RF_REQUIRED, int, (rf_handle, uint32_t *))                                        \
	X(aclrtSynchronizeEventWithTimeout, RF_REQUIRED, int, (rf_handle, int32_t))                                \
	X(aclrtStreamWaitEvent, RF_REQUIRED, int, (rf_handle, rf_handle))                                          \
	X(aclrtDestroyEvent, RF_REQUIRED, int, (rf_handle))                                                        \
	X(aclrtMalloc, RF_REQUIRED, int, (void **, size_t, int32_t))                                               \
	X(aclrtFree, RF_REQUIRED, int, (void *))                                                                   \
	X(aclrtMallocHost, RF_REQUIRED, int, (void **, size_t))                                                    \
	X(aclrtFreeHost, RF_REQUIRED, int, (void *))                                                               \
	X(aclrtMemset, RF_OPTIONAL, int, (void *, size_t, int32_t, size_t))                                        \
	X(aclrtMemcpy, RF_REQUIRED, int, (void *, size_t, const void *, size_t, int32_t))                          \
	X(aclrtMemcpyAsync, RF_REQUIRED, int, (void *, size_t, const void *, size_t, int32_t, rf_handle))          \
	X(aclrtBinaryLoadFromFile, RF_REQUIRED, int, (const char *, rf_load_options *, rf_handle *))               \
	X(aclrtBinaryUnLoad, RF_OPTIONAL, int, (rf_handle))                                                        \
	X(aclrtBinaryGetFunction, RF_REQUIRED, int, (rf_handle, const char *, rf_handle *))                        \
	X(aclrtRegisterCpuFunc, RF_OPTIONAL, int, (rf_handle, const char *, const char *, rf_handle *))            \
	X(aclrtLaunchKernelWithHostArgs, RF_REQUIRED, int,                                                         \
	  (rf_handle, uint32_t, rf_handle, void *, void *, size_t, void *, size_t))                                \
	X(aclrtExceptionInfoCallbackRegister, RF_OPTIONAL, int, (rf_exception_callback))                           \
	X(aclrtSetExceptionInfoCallback, RF_OPTIONAL, int, (rf_exception_callback))                                \
	X(aclrtGetTaskIdFromExceptionInfo, RF_OPTIONAL, uint32_t, (const void *))                                  \
	X(aclrtGetStreamIdFromExceptionInfo, RF_OPTIONAL, uint32_t, (const void *))                                \
	X(aclrtGetThreadIdFromExceptionInfo, RF_OPTIONAL, uint32_t, (const void *))                                \
	X(aclrtGetDeviceIdFromExceptionInfo, RF_OPTIONAL, uint32_t, (const void *))                                \
	X(aclrtGetErrorCodeFromExceptionInfo, RF_OPTIONAL, uint32_t, (const void *))

#define RF_FIELD(name, need, result, params) result(*name) params;

// The functions of one library; absent ones are NULL. It is never freed: the
// library stays loaded for the life of the process.
typedef struct {
	RF_FUNCTIONS(RF_FIELD)
} rf_acl;

// One device as a host drives it.
typedef struct rf_device {
	struct rf_device *next; // of all that were opened and not forgotten
	rf_acl *acl;
	rf_handle context; // current for every call
	int32_t id;
	int32_t borrowed; // the context is a caller's: compared, never set
	pthread_mutex_t lock;
	// The runtime's own words for the latest failure; lock guards them.
	int32_t failed;
	char message[1024];
} rf_device;

// How a call ended. A call that was not attempted has the code for it.
typedef struct {
	int32_t code;
	int32_t last; // the thread's last error right after the call
	int32_t attempted;
	int32_t status;
	rf_handle value;
	void *memory;
} rf_answer;

// How a call of opening, loading or closing ended, and which it was.
typedef struct {
	int32_t code;
	int32_t number;
	rf_handle value;
	rf_device *device;
	const char *call;
	char message[512];
} rf_setup;

// acl.c: finding the library and its functions.
typedef struct {
	void *library;
	char error[512];
} rf_loaded;

rf_loaded rf_load_library(const char *path);
rf_acl *rf_bind(void *library, void *runtime);
int rf_function_count(void);
const char *rf_function_name(int i);
int rf_function_need(int i);
int rf_function_present(const rf_acl *acl, int i);
const char *rf_library_path(const rf_acl *acl);
const char *rf_sanitizer(void);

// setup.c: what is done once.
rf_setup rf_init(rf_acl *acl);
rf_setup rf_finalize(rf_acl *acl);
rf_setup rf_count_devices(rf_acl *acl);
rf_setup rf_open(rf_acl *acl, int32_t device, int borrow);
rf_setup rf_reopen(rf_device *d);
rf_setup rf_close(rf_device *d);
void rf_forget(rf_device *d);
rf_setup rf_load_image(rf_device *d, const char *path, int32_t cpu_kernel_mode);
rf_setup rf_find_kernel(rf_device *d, rf_handle image, const char *name, const char *op_type);
rf_setup rf_unload_image(rf_device *d, rf_handle image);
rf_setup rf_watch(rf_acl *acl);

typedef struct {
	int32_t code;
	int32_t major, minor, patch;
	char package[128];
	char soc[64];
} rf_about;

rf_about rf_version(rf_acl *acl);
rf_about rf_soc(rf_acl *acl);

// call.c: one trampoline for each call of a running device.
rf_answer rf_current_context(rf_device *d);
rf_answer rf_check_context(rf_device *d);
rf_answer rf_create_stream(rf_device *d);
rf_answer rf_destroy_stream(rf_device *d, rf_handle s);
rf_answer rf_stream_id(rf_device *d, rf_handle s);
rf_answer rf_query_stream(rf_device *d, rf_handle s);
rf_answer rf_synchronize_stream(rf_device *d, rf_handle s, int32_t ms);
rf_answer rf_capture_status(rf_device *d, rf_handle s);
rf_answer rf_create_event(rf_device *d);
rf_answer rf_record_event(rf_device *d, rf_handle e, rf_handle s);
rf_answer rf_query_event(rf_device *d, rf_handle e);
rf_answer rf_wait_event(rf_device *d, rf_handle e, int32_t ms);
rf_answer rf_stream_wait_event(rf_device *d, rf_handle s, rf_handle e);
rf_answer rf_destroy_event(rf_device *d, rf_handle e);
rf_answer rf_alloc(rf_device *d, int host, size_t size);
rf_answer rf_zero(rf_device *d, void *m, int host, size_t size);
rf_answer rf_free(rf_device *d, void *m, int host);
rf_answer rf_copy(rf_device *d, void *dst, const void *src, size_t size, int32_t kind);
rf_answer rf_copy_async(rf_device *d, void *dst, const void *src, size_t size, int32_t kind, rf_handle s);
rf_answer rf_launch(rf_device *d, rf_handle kernel, uint32_t blocks, rf_handle s, void *args);
rf_answer rf_reset(rf_device *d);

// The words for the latest failure of a device.
typedef struct {
	int32_t code;
	char message[1024];
} rf_words;

rf_words rf_latest_failure(rf_device *d);

// ring.c: exception notices.
enum { RF_RING = 256, RF_DEVICES = 64, RF_BATCH = 16 };

typedef struct {
	int32_t device, stream;
	uint32_t task, thread;
	int32_t code;
} rf_notice;

typedef struct {
	int32_t count;
	uint64_t dropped;
	rf_notice notices[RF_BATCH];
} rf_batch;

int rf_can_watch(const rf_acl *acl);
void rf_ring_acl(rf_acl *acl);
void rf_ring_open(int32_t device, uint32_t limit);
void rf_ring_close(int32_t device);
rf_batch rf_ring_take(int32_t device, int32_t want);
uint64_t rf_ring_strays(void);
void rf_on_exception(void *info);

#endif
