/* fork_watch.h: registers the backend's fork handlers (fork_handlers.h) with the C library. */
#ifndef KPTI_PYTHON_TRACER_STATE_FORK_WATCH_H
#define KPTI_PYTHON_TRACER_STATE_FORK_WATCH_H

typedef struct kpti_fork_handlers {
    void (*before)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
} kpti_fork_handlers;

/* Sets the handlers. Called when the backend is opened, before any other function. HANDLERS must stay
 * valid. */
void kpti_fork_use(const kpti_fork_handlers *handlers);

/* Registers the handlers once per process. Later calls do nothing. */
void kpti_fork_watch(void);

#endif
