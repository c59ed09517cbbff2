/* traceback_dicts.h: symbolized tracebacks as lists of dictionaries. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_DICTS_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_DICTS_H

#include "hosts/standalone/module/traceback/traceback_state.h"

extern const char *const kpti_frame_keys[KPTI_KEYS];
extern const char *const kpti_frame_kinds[KPTI_KINDS];

/* A sink. CTX is a kpti_batch. Its result is a list of lists of dictionaries. */
kpt_status kpti_traceback_words(void *ctx, const kpt_symbols *symbols);

#endif
