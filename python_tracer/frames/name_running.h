/* name_running.h: names the code objects that run (named_code.h), for threads without the GIL. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_NAME_RUNNING_H
#define KPTI_PYTHON_TRACER_FRAMES_NAME_RUNNING_H

#include "python_tracer/frames/named_code.h"

#if KPTI_NAMED_CODES
/* Asks the main thread to name the code objects that run, soon. No GIL is needed. */
void kpti_named_ask(void);
#else
static inline void kpti_named_ask(void) {}
#endif

#endif
