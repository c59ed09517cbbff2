/* gc_events.h: records garbage collections. One callable is in gc.callbacks while a tracer that records
 * them is active. The caller holds the GIL or a thread state. A pending exception is left alone. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_GC_EVENTS_H
#define KPTI_PYTHON_TRACER_HOOKS_GC_EVENTS_H

/* Does nothing if the callable is installed. */
void kpti_gc_install(void);
void kpti_gc_remove(void);
/* Forgets the callable without touching it, since its interpreter has ended. */
void kpti_gc_forget(void);

#endif
