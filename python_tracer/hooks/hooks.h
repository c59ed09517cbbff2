/* hooks.h: delivers the interpreter's events to the streams of recording threads. There is one
 * implementation per mechanism: hooks_monitoring.c for sys.monitoring, hooks_profile.c for
 * PyEval_SetProfile. All functions need the GIL or a thread state and leave a pending exception alone. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_HOOKS_H
#define KPTI_PYTHON_TRACER_HOOKS_HOOKS_H

#include "abi/impl/kpti_impl.h"

/* Installs the hooks unless they are installed. TOOL_ID 0 lets kpytrace choose the tool; another tool is
 * registered as NAME unless NAME is empty. Returns KPT_E_BUSY if the interpreter has no free slot. */
kpt_status kpti_hooks_install(uint32_t tool_id, kpt_str name, kpti_error *error);
/* Returns the number of the interpreter's threads that had no hook when the hooks were last removed. */
uint64_t kpti_hooks_unreached(void);
/* Removes the hooks if they are installed. */
void kpti_hooks_remove(void);
/* Forgets the hooks without touching the interpreter, which has ended. */
void kpti_hooks_forget(void);

#endif
