/* traceback_json.h: symbolized tracebacks as JSON. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_JSON_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_JSON_H

#include "abi/kpt_traceback.h"

/* A sink. CTX is a kpti_batch. Its result is a string. */
kpt_status kpti_traceback_json(void *ctx, const kpt_symbols *symbols);

#endif
