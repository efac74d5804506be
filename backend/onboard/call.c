// One trampoline for each call of a device. It asks which context is current
// on this thread, puts its own there unless that is a borrowed one, makes the
// call and reads the thread's last error, all without leaving the thread: the
// thread may have run anything before, and the error is its own.

#include "acl.h"

#include <stdio.h>
#include <string.h>

// Makes the device's context current. Returns 0, or why the call must not be made.
static int enter(rf_device *d)
{
	rf_handle current = 0;
	int code = d->acl->aclrtGetCurrentContext(&current);
	if (code == RF_OK && current == d->context)
		return RF_OK;
	if (!d->borrowed) {
		// That question was ours: its answer must not pass for the last error
		// of the call that follows.
		if (code != RF_OK && d->acl->aclrtGetLastError != NULL)
			d->acl->aclrtGetLastError(RF_THREAD_LEVEL);
		return d->acl->aclrtSetCurrentContext(d->context);
	}
	if (code != RF_OK)
		return code;
	return current == 0 ? RF_CONTEXT_NULL : RF_STREAM_CONTEXT;
}

// Keeps the runtime's own words for a failure. Asking also empties its list,
// which grows otherwise.
static void remember(rf_device *d, int code)
{
	if (d->acl->aclGetRecentErrMsg == NULL)
		return;
	const char *words = d->acl->aclGetRecentErrMsg();
	pthread_mutex_lock(&d->lock);
	d->failed = code;
	snprintf(d->message, sizeof d->message, "%s", words != NULL ? words : "");
	pthread_mutex_unlock(&d->lock);
}

static rf_answer leave(rf_device *d, int code)
{
	rf_answer a = {.code = code, .attempted = 1};
	a.last = d->acl->aclrtPeekAtLastError(RF_THREAD_LEVEL);
	if (__builtin_expect(code != RF_OK, 0))
		remember(d, code);
	return a;
}

static rf_answer refuse(rf_device *d, int code)
{
	rf_answer a = {.code = code};
	a.last = d->acl->aclrtPeekAtLastError(RF_THREAD_LEVEL);
	return a;
}

#define ENTER(d)                                                                                                   \
	do {                                                                                                       \
		int why = enter(d);                                                                                \
		if (__builtin_expect(why != RF_OK, 0))                                                             \
			return refuse(d, why);                                                                     \
	} while (0)

#define NEED(d, name)                                                                                              \
	do {                                                                                                       \
		if (d->acl->name == NULL)                                                                          \
			return refuse(d, RF_NOT_SUPPORTED);                                                        \
	} while (0)

// The context that a call would be made under. That a borrowed one is not
// there is an answer, not a failure.
rf_answer rf_current_context(rf_device *d)
{
	if (!d->borrowed) {
		ENTER(d);
		return leave(d, RF_OK);
	}
	rf_handle current = 0;
	int code = d->acl->aclrtGetCurrentContext(&current);
	if (code == RF_CONTEXT_NULL) {
		code = RF_OK;
		current = 0;
	}
	rf_answer a = leave(d, code);
	a.value = code == RF_OK ? current : 0;
	return a;
}

rf_answer rf_check_context(rf_device *d)
{
	ENTER(d);
	return leave(d, RF_OK);
}

rf_answer rf_create_stream(rf_device *d)
{
	ENTER(d);
	rf_handle s = 0;
	int code = d->acl->aclrtCreateStreamWithConfig != NULL ? d->acl->aclrtCreateStreamWithConfig(&s, 0, 0)
							       : d->acl->aclrtCreateStream(&s);
	rf_answer a = leave(d, code);
	a.value = s;
	return a;
}

rf_answer rf_destroy_stream(rf_device *d, rf_handle s)
{
	ENTER(d);
	return leave(d, d->acl->aclrtDestroyStream(s));
}

rf_answer rf_stream_id(rf_device *d, rf_handle s)
{
	NEED(d, aclrtStreamGetId);
	ENTER(d);
	int32_t id = 0;
	rf_answer a = leave(d, d->acl->aclrtStreamGetId(s, &id));
	a.status = id;
	return a;
}

// A stream's status and an event's number "complete" differently: 0 and 1.
rf_answer rf_query_stream(rf_device *d, rf_handle s)
{
	ENTER(d);
	uint32_t status = RF_STREAM_BUSY;
	int code;
	if (d->acl->aclrtStreamQuery != NULL) {
		code = d->acl->aclrtStreamQuery(s, &status);
	} else {
		code = d->acl->rtStreamQuery(s); // says with the code what the other says with the status
		status = code == RF_OK ? RF_STREAM_COMPLETE : RF_STREAM_BUSY;
		if (code == RF_STREAM_NOT_COMPLETE)
			code = RF_OK;
	}
	rf_answer a = leave(d, code);
	a.status = code == RF_OK && status == RF_STREAM_COMPLETE;
	return a;
}

// A timeout of zero is passed on, for the device to reject; none is ever
// negative, which would be to wait for ever. A device that takes zero for a
// look at the present state is overruled: such a look is a query's business.
rf_answer rf_synchronize_stream(rf_device *d, rf_handle s, int32_t ms)
{
	ENTER(d);
	int code = d->acl->aclrtSynchronizeStreamWithTimeout(s, ms);
	return leave(d, ms == 0 ? RF_PARAM_INVALID : code);
}

rf_answer rf_capture_status(rf_device *d, rf_handle s)
{
	NEED(d, aclmdlRICaptureGetInfo);
	ENTER(d);
	uint32_t status = 0;
	rf_handle model = 0;
	rf_answer a = leave(d, d->acl->aclmdlRICaptureGetInfo(s, &status, &model));
	a.status = (int32_t)status;
	return a;
}

rf_answer rf_create_event(rf_device *d)
{
	ENTER(d);
	rf_handle e = 0;
	rf_answer a = leave(d, d->acl->aclrtCreateEventExWithFlag(&e, RF_EVENT_SYNC));
	a.value = e;
	return a;
}

rf_answer rf_record_event(rf_device *d, rf_handle e, rf_handle s)
{
	ENTER(d);
	return leave(d, d->acl->aclrtRecordEvent(e, s));
}

rf_answer rf_query_event(rf_device *d, rf_handle e)
{
	ENTER(d);
	uint32_t status = RF_EVENT_NOT_RECORDED;
	rf_answer a = leave(d, d->acl->aclrtQueryEventStatus(e, &status));
	a.status = a.code == RF_OK && status == RF_EVENT_RECORDED;
	return a;
}

rf_answer rf_wait_event(rf_device *d, rf_handle e, int32_t ms)
{
	ENTER(d);
	int code = d->acl->aclrtSynchronizeEventWithTimeout(e, ms);
	return leave(d, ms == 0 ? RF_PARAM_INVALID : code);
}

rf_answer rf_stream_wait_event(rf_device *d, rf_handle s, rf_handle e)
{
	ENTER(d);
	return leave(d, d->acl->aclrtStreamWaitEvent(s, e));
}

rf_answer rf_destroy_event(rf_device *d, rf_handle e)
{
	ENTER(d);
	return leave(d, d->acl->aclrtDestroyEvent(e));
}

rf_answer rf_alloc(rf_device *d, int host, size_t size)
{
	ENTER(d);
	void *m = NULL;
	int code = host ? d->acl->aclrtMallocHost(&m, size) : d->acl->aclrtMalloc(&m, size, RF_HUGE_FIRST);
	rf_answer a = leave(d, code);
	a.memory = m;
	return a;
}

// Fills with zeros what a reset left undefined.
rf_answer rf_zero(rf_device *d, void *m, int host, size_t size)
{
	ENTER(d);
	if (host) {
		memset(m, 0, size);
		return leave(d, RF_OK);
	}
	NEED(d, aclrtMemset);
	return leave(d, d->acl->aclrtMemset(m, size, 0, size));
}

rf_answer rf_free(rf_device *d, void *m, int host)
{
	ENTER(d);
	return leave(d, host ? d->acl->aclrtFreeHost(m) : d->acl->aclrtFree(m));
}

rf_answer rf_copy(rf_device *d, void *dst, const void *src, size_t size, int32_t kind)
{
	ENTER(d);
	return leave(d, d->acl->aclrtMemcpy(dst, size, src, size, kind));
}

rf_answer rf_copy_async(rf_device *d, void *dst, const void *src, size_t size, int32_t kind, rf_handle s)
{
	ENTER(d);
	return leave(d, d->acl->aclrtMemcpyAsync(dst, size, src, size, kind, s));
}

// A kernel gets one argument, the address of its argument memory, or none. The
// runtime copies it into the launch before it returns.
rf_answer rf_launch(rf_device *d, rf_handle kernel, uint32_t blocks, rf_handle s, void *args)
{
	ENTER(d);
	void *package[1] = {args};
	int code = d->acl->aclrtLaunchKernelWithHostArgs(kernel, blocks, s, NULL, args != NULL ? package : NULL,
							 args != NULL ? sizeof package : 0, NULL, 0);
	return leave(d, code);
}

rf_answer rf_reset(rf_device *d)
{
	NEED(d, aclrtResetDeviceForce);
	return leave(d, d->acl->aclrtResetDeviceForce(d->id));
}

rf_words rf_latest_failure(rf_device *d)
{
	rf_words w;
	pthread_mutex_lock(&d->lock);
	w.code = d->failed;
	memcpy(w.message, d->message, sizeof w.message);
	pthread_mutex_unlock(&d->lock);
	return w;
}
