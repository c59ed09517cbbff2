/* shared_tracebacks.h: the one traceback gatherer of the process. It is made at the first use, through its own
 * binding, and never freed. No lock guards it, so that the child of a fork finds it consistent at any time. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SHARED_TRACEBACKS_H
#define KPTI_HOSTS_STANDALONE_SESSION_SHARED_TRACEBACKS_H

#include "hosts/standalone/error.h"

/* Returns the gatherer, or NULL if it was not made yet. Any thread may call it. */
const kpt_tracebacks *kpti_tracebacks(void);

/* Makes the gatherer. If another thread was first, returns that thread's gatherer, and GENERATED is not used.
 * Returns NULL with the reason in ERROR; the next call tries again. A no-op is an error here. Any thread may
 * call it. */
const kpt_tracebacks *kpti_tracebacks_make(const char *plugin, kpt_generated_fn generated,
                                           kpti_session_error *error);

/* Returns 1 if the symbols that a sink received can be read: they have COUNT tracebacks, and every index is in
 * range. */
int kpti_symbols_are_whole(const kpt_symbols *symbols, uint64_t count);

static inline const kpt_symbol *kpti_symbol_at(const kpt_symbols *symbols, uint64_t index)
{
    return (const kpt_symbol *)((const char *)symbols->symbols + index * symbols->symbol_stride);
}

#endif
