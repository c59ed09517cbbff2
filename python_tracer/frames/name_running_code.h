/* name_running_code.h: names the running code objects (named_code.h) on behalf of threads without the GIL. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_NAME_RUNNING_CODE_H
#define KPTI_PYTHON_TRACER_FRAMES_NAME_RUNNING_CODE_H

#include "python_tracer/frames/named_code.h"

#if KPTI_NAMED_CODES
/* Schedules a pending call on the main thread that names the running code objects. Needs no GIL. */
void kpti_named_ask(void);
#else
static inline void kpti_named_ask(void) {}
#endif

#endif
