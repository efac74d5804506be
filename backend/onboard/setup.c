// What is done once, and may fail in many ways: opening, loading, closing. The
// runtime's words for a failure are fetched on the thread that failed.

#include "acl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rf_setup ended(rf_acl *acl, const char *call, int code)
{
	rf_setup s = {.code = code, .call = call};
	if (code != RF_OK && acl->aclGetRecentErrMsg != NULL) {
		const char *words = acl->aclGetRecentErrMsg();
		snprintf(s.message, sizeof s.message, "%s", words != NULL ? words : "");
	}
	return s;
}

#define TRY(acl, name, ...)                                                                                        \
	do {                                                                                                       \
		int code = acl->name(__VA_ARGS__);                                                                 \
		if (code != RF_OK)                                                                                 \
			return ended(acl, #name, code);                                                            \
	} while (0)

// That someone else in the process was first is no failure; the answer's
// number is 1 if it was this call that initialised.
rf_setup rf_init(rf_acl *acl)
{
	int code = acl->aclInit(NULL);
	if (code == RF_ACL_REPEATED_INIT)
		return ended(acl, "aclInit", RF_OK);
	rf_setup s = ended(acl, "aclInit", code);
	s.number = code == RF_OK;
	return s;
}

rf_setup rf_finalize(rf_acl *acl) { return ended(acl, "aclFinalize", acl->aclFinalize()); }

rf_setup rf_count_devices(rf_acl *acl)
{
	uint32_t n = 0;
	rf_setup s = ended(acl, "aclrtGetDeviceCount", acl->aclrtGetDeviceCount(&n));
	s.number = (int32_t)n;
	return s;
}

// What was detached stays reachable.
static rf_device *opened;
static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;

static rf_setup own(rf_acl *acl, int32_t device)
{
	rf_setup s;
	TRY(acl, aclrtSetDevice, device);
	rf_handle context = 0;
	s = ended(acl, "aclrtCreateContext", acl->aclrtCreateContext(&context, device));
	if (s.code != RF_OK)
		acl->aclrtResetDevice(device); // takes back the SetDevice; the first failure is the one to tell
	s.value = context;
	return s;
}

static rf_setup borrow(rf_acl *acl, int32_t device)
{
	rf_handle context = 0;
	TRY(acl, aclrtGetCurrentContext, &context);
	if (context == 0)
		return ended(acl, "aclrtGetCurrentContext", RF_CONTEXT_NULL);
	rf_setup s = ended(acl, "aclrtGetDevice", RF_OK);
	s.number = device;
	if (acl->aclrtGetDevice != NULL)
		TRY(acl, aclrtGetDevice, &s.number);
	s.value = context;
	return s;
}

// The answer's number is the device that a borrowed context is of.
rf_setup rf_open(rf_acl *acl, int32_t device, int borrowed)
{
	rf_setup s = borrowed ? borrow(acl, device) : own(acl, device);
	if (s.code != RF_OK || (borrowed && s.number != device))
		return s;
	rf_device *d = calloc(1, sizeof *d);
	if (d == NULL)
		abort();
	d->acl = acl;
	d->context = s.value;
	d->id = device;
	d->borrowed = borrowed;
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_lock(&opened_lock);
	d->next = opened;
	opened = d;
	pthread_mutex_unlock(&opened_lock);
	s.device = d;
	return s;
}

// Makes a context anew after a reset took the old one away.
rf_setup rf_reopen(rf_device *d)
{
	rf_setup s = own(d->acl, d->id);
	if (s.code == RF_OK)
		d->context = s.value;
	return s;
}

// Gives the context back. A borrowed one is not ours to give.
rf_setup rf_close(rf_device *d)
{
	if (d->borrowed)
		return ended(d->acl, "", RF_OK);
	if (d->context != 0) {
		TRY(d->acl, aclrtDestroyContext, d->context);
		d->context = 0; // a second try goes on where this one stops
	}
	return ended(d->acl, "aclrtResetDevice", d->acl->aclrtResetDevice(d->id));
}

void rf_forget(rf_device *d)
{
	pthread_mutex_lock(&opened_lock);
	rf_device **at = &opened;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	pthread_mutex_unlock(&opened_lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

// Makes the device's context current for what follows.
static int current(rf_device *d)
{
	rf_answer a = rf_check_context(d);
	return a.code;
}

// A mode below 0 is an image for the AICore.
rf_setup rf_load_image(rf_device *d, const char *path, int32_t cpu_kernel_mode)
{
	int code = current(d);
	if (code != RF_OK)
		return ended(d->acl, "aclrtSetCurrentContext", code);
	rf_load_option option = {.type = RF_OPT_CPU_KERNEL_MODE};
	option.value.cpu_kernel_mode = cpu_kernel_mode;
	rf_load_options options = {&option, 1};
	rf_handle image = 0;
	rf_setup s = ended(d->acl, "aclrtBinaryLoadFromFile",
			   d->acl->aclrtBinaryLoadFromFile(path, cpu_kernel_mode < 0 ? NULL : &options, &image));
	s.value = image;
	return s;
}

// With an op type, the AICPU function is registered under it first.
rf_setup rf_find_kernel(rf_device *d, rf_handle image, const char *name, const char *op_type)
{
	int code = current(d);
	if (code != RF_OK)
		return ended(d->acl, "aclrtSetCurrentContext", code);
	rf_handle f = 0;
	rf_setup s;
	if (op_type == NULL)
		s = ended(d->acl, "aclrtBinaryGetFunction", d->acl->aclrtBinaryGetFunction(image, name, &f));
	else if (d->acl->aclrtRegisterCpuFunc == NULL)
		s = ended(d->acl, "aclrtRegisterCpuFunc", RF_NOT_SUPPORTED);
	else
		s = ended(d->acl, "aclrtRegisterCpuFunc", d->acl->aclrtRegisterCpuFunc(image, name, op_type, &f));
	s.value = f;
	return s;
}

rf_setup rf_unload_image(rf_device *d, rf_handle image)
{
	if (d->acl->aclrtBinaryUnLoad == NULL)
		return ended(d->acl, "aclrtBinaryUnLoad", RF_OK);
	int code = current(d);
	if (code != RF_OK)
		return ended(d->acl, "aclrtSetCurrentContext", code);
	return ended(d->acl, "aclrtBinaryUnLoad", d->acl->aclrtBinaryUnLoad(image));
}

// Has the runtime tell of exceptions: beside other listeners where it can,
// else in the one place there is.
rf_setup rf_watch(rf_acl *acl)
{
	rf_ring_acl(acl);
	if (acl->aclrtExceptionInfoCallbackRegister != NULL)
		TRY(acl, aclrtExceptionInfoCallbackRegister, rf_on_exception);
	else
		TRY(acl, aclrtSetExceptionInfoCallback, rf_on_exception);
	return ended(acl, "", RF_OK);
}

rf_about rf_version(rf_acl *acl)
{
	rf_about v = {0};
	v.code = acl->aclrtGetVersion(&v.major, &v.minor, &v.patch);
	rf_package_version p;
	memset(&p, 0, sizeof p);
	if (acl->aclsysGetCANNVersion != NULL && acl->aclsysGetCANNVersion(RF_PACKAGE_CANN, &p) == RF_OK) {
		p.version[sizeof p.version - 1] = 0;
		memcpy(v.package, p.version, sizeof v.package);
	}
	return v;
}

rf_about rf_soc(rf_acl *acl)
{
	rf_about v = {0};
	const char *name = acl->aclrtGetSocName != NULL ? acl->aclrtGetSocName() : NULL;
	if (name != NULL)
		snprintf(v.soc, sizeof v.soc, "%s", name);
	return v;
}
