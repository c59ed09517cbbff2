/* python_exit.h: an atexit callback that stops all recording while Python objects can still be touched. The
 * caller holds the GIL or a thread state. A pending exception is left alone. */
#ifndef KPTI_PYTHON_TRACER_PYTHON_EXIT_H
#define KPTI_PYTHON_TRACER_PYTHON_EXIT_H

/* Registers the callback. Called once per interpreter. */
void kpti_python_exit_watch(void);

#endif
