/* symbolize_tracebacks.h: symbolizes tracebacks with the gatherer of the process. The GIL is held. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_SYMBOLIZE_TRACEBACKS_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_SYMBOLIZE_TRACEBACKS_H

#include "hosts/standalone/module/traceback/traceback_state.h"

/* Returns the gatherer of the process and makes it if there is none. Returns NULL with an exception. */
const kpt_tracebacks *kpti_need_tracebacks(void);
/* Sets the exception for STATUS of the gatherer. Returns NULL. */
PyObject *kpti_raise_traceback(kpt_status status, const char *what);

/* Symbolizes a list, a tuple or another sequence of tracebacks. If SINGLE is set, it has one element and the
 * result is that element's. Returns the result of SINK, or NULL with an exception. */
PyObject *kpti_symbolize(kpti_module_state *state, PyObject *sequence, kpt_symbols_fn sink,
                         int single);

#endif
