/* watch.h: calls that the host wants to hear of when they begin: it reads what it needs of the object
 * now, and its answer travels with the call. Nothing is kept alive. */
#ifndef KPTI_WATCH_H
#define KPTI_WATCH_H

#include "thread.h"

/* Tells the hosts of those tracers in RECORDED that watch CODE, whose frame has just begun and whose
 * ENTER they have just recorded. Inside a callback, with busy set; leaves a pending exception alone. */
void kpti_watch_call(kpti_thread *thread, PyCodeObject *code, uint32_t recorded, uint64_t ticks);

#endif
