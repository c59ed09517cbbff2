/* python_exit.h: the interpreter's end: a callback in atexit that stops all recording while Python can still
 * be touched. Needs the GIL or a thread state; leaves a pending exception alone. */
#ifndef KPTI_PYTHON_TRACER_PYTHON_EXIT_H
#define KPTI_PYTHON_TRACER_PYTHON_EXIT_H

/* Once an interpreter. */
void kpti_python_exit_watch(void);

#endif
