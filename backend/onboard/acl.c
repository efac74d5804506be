#define _GNU_SOURCE
#include "acl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RF_ROW(name, need, result, params) {#name, need, offsetof(rf_acl, name)},

static const struct {
	const char *name;
	int need;
	size_t offset;
} functions[] = {RF_FUNCTIONS(RF_ROW)};

rf_loaded rf_load_library(const char *path)
{
	rf_loaded l = {0};
	l.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (l.library == NULL) {
		const char *why = dlerror();
		snprintf(l.error, sizeof l.error, "%s", why != NULL ? why : "no reason given");
	}
	return l;
}

static void **slot(const rf_acl *acl, int i)
{
	return (void **)((char *)acl + functions[i].offset);
}

static struct bound {
	struct bound *next;
	rf_acl acl;
} *all; // never freed, and reachable from here

// Looks a library and what it depends on over for every function. Names that
// begin with rt may also be in a library of their own, which may be NULL.
rf_acl *rf_bind(void *library, void *runtime)
{
	struct bound *b = calloc(1, sizeof *b);
	if (b == NULL)
		abort();
	b->next = all;
	all = b;
	rf_acl *acl = &b->acl;
	for (int i = 0; i < rf_function_count(); i++) {
		void *f = dlsym(library, functions[i].name);
		if (f == NULL && runtime != NULL && strncmp(functions[i].name, "rt", 2) == 0)
			f = dlsym(runtime, functions[i].name);
		*slot(acl, i) = f;
	}
	return acl;
}

int rf_function_count(void) { return sizeof functions / sizeof functions[0]; }
const char *rf_function_name(int i) { return functions[i].name; }
int rf_function_need(int i) { return functions[i].need; }
int rf_function_present(const rf_acl *acl, int i) { return *slot(acl, i) != NULL; }

// The file that the loader took, whatever name it was asked for by.
const char *rf_library_path(const rf_acl *acl)
{
	Dl_info info;
	for (int i = 0; i < rf_function_count(); i++)
		if (*slot(acl, i) != NULL && dladdr(*slot(acl, i), &info) != 0)
			return info.dli_fname;
	return "";
}

// What this code is compiled with, so that a test can tell its builds apart.
const char *rf_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return "address";
#elif defined(__SANITIZE_THREAD__)
	return "thread";
#else
	return "none";
#endif
}
