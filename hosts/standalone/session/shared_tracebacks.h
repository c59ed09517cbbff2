/* shared_tracebacks.h: the process's one object that gathers tracebacks: made at the first use, through a door of
 * its own, and never freed. No lock guards it, so that the child of a fork finds it whole at any time. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SHARED_TRACEBACKS_H
#define KPTI_HOSTS_STANDALONE_SESSION_SHARED_TRACEBACKS_H

#include "hosts/standalone/error.h"

/* NULL: it is not made yet. Any thread. */
const kpt_tracebacks *kpti_tracebacks(void);

/* Makes it; who comes second gets the first one's, and GENERATED is then not used. NULL: ERROR says why,
 * and the next call tries again. A no-op is an error here. Any thread. */
const kpt_tracebacks *kpti_tracebacks_make(const char *plugin, kpt_generated_fn generated,
                                           kpti_session_error *error);

/* Whether what a sink was given can be read: COUNT tracebacks, and no index that points nowhere. */
int kpti_symbols_are_whole(const kpt_symbols *symbols, uint64_t count);

static inline const kpt_symbol *kpti_symbol_at(const kpt_symbols *symbols, uint64_t index)
{
    return (const kpt_symbol *)((const char *)symbols->symbols + index * symbols->symbol_stride);
}

#endif
