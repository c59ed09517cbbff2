/* hooks.h: the interpreter's events, brought to the recording threads' streams. One implementation a
 * mechanism: hooks_monitoring.c for sys.monitoring, hooks_profile.c for PyEval_SetProfile.
 * All of it needs the GIL or a thread state, and leaves a pending exception alone. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_HOOKS_H
#define KPTI_PYTHON_TRACER_HOOKS_HOOKS_H

#include "abi/impl/kpti_impl.h"

/* Installs them, if they are not; TOOL_ID 0 is our choice, another one's tool is called NAME, if that is
 * not empty. KPT_E_BUSY where the interpreter has no place for us. */
kpt_status kpti_hooks_install(uint32_t tool_id, kpt_str name, kpti_error *error);
/* How many threads of the interpreter they could not be set on, when they were last removed. */
uint64_t kpti_hooks_unreached(void);
/* Removes them, if they are there. */
void kpti_hooks_remove(void);
/* Their interpreter has ended: forgets them, without touching any of it. */
void kpti_hooks_forget(void);

#endif
