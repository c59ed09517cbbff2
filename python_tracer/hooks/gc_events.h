/* gc_events.h: garbage collections as events: one callable in gc.callbacks while a tracer that asked for it
 * records. Needs the GIL or a thread state; leaves a pending exception alone. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_GC_EVENTS_H
#define KPTI_PYTHON_TRACER_HOOKS_GC_EVENTS_H

/* Again is no change. */
void kpti_gc_install(void);
void kpti_gc_remove(void);
/* Its interpreter has ended: forgets the callable, without touching it. */
void kpti_gc_forget(void);

#endif
