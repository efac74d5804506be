// Faults that strike calls, by the name of the call.

#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	char call[64];
	int nth, mode, code;
	ns arg;
} faults[64];

int add_fault(const char *call, int nth, int mode, int code, ns arg)
{
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		if (faults[i].nth > 0)
			continue;
		snprintf(faults[i].call, sizeof faults[i].call, "%s", call);
		faults[i].nth = nth;
		faults[i].mode = mode;
		faults[i].code = code;
		faults[i].arg = arg;
		return 1;
	}
	return 0;
}

void clear_faults(void) { memset(faults, 0, sizeof faults); }

// What strikes this call.
struct strike strike(const char *call)
{
	struct strike s = {.late = -1};
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		if (faults[i].nth == 0 || strcmp(faults[i].call, call) != 0 || --faults[i].nth > 0)
			continue;
		switch (faults[i].mode) {
		case BEFORE: s.before = faults[i].code; break;
		case AFTER: s.after = faults[i].code; break;
		case HANG: s.hang = 1; break;
		case FATAL: s.fatal = faults[i].code; break;
		case LATE: s.late = faults[i].arg; break;
		case LOST: s.lost = 1; break;
		case SKIP: s.before = SKIPPED; break;
		}
	}
	return s;
}

// A host did what it must not.
void misuse(const char *what)
{
	if (g.misuses++ == 0)
		snprintf(g.misuse, sizeof g.misuse, "%s", what);
}

// STANDIN_FAULTS=call:nth:mode:code[:nanoseconds],... for programs that cannot
// call the control functions.
__attribute__((constructor)) static void from_environment(void)
{
	static const char *const modes[] = {"", "before", "after", "hang", "fatal", "late", "lost", "skip"};
	const char *text = getenv("STANDIN_FAULTS");
	while (text != NULL && *text != 0) {
		char call[64], mode[16];
		int nth = 0, code = 0;
		long long arg = 0;
		if (sscanf(text, "%63[^:]:%d:%15[^:]:%d:%lld", call, &nth, mode, &code, &arg) >= 4)
			for (int m = BEFORE; m <= SKIP; m++)
				if (strcmp(mode, modes[m]) == 0)
					add_fault(call, nth, m, code, arg);
		text = strchr(text, ',');
		if (text != NULL)
			text++;
	}
}
