/* installation.h: what we have put into the interpreter: the hooks, the GC callback, the exit
 * handler, the slot in code objects; and into which one. One thread at a time changes it: that is
 * the GIL's doing where there is one, but a free-threaded Python needs a lock, and while a thread
 * waits for it Python must be able to stop the world: so it is one of Python's own.
 *
 * All of it needs the GIL or a thread state, and holds none of our locks. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_INSTALLATION_H
#define KPTI_PYTHON_TRACER_INTERPRETER_INSTALLATION_H

/* What is installed, by the modules above this one. */
typedef struct kpti_installed_parts {
    void (*prepare)(void);      /* before each start: what a code object needs */
    void (*watch_exit)(void);   /* once an interpreter: its atexit callback */
    void (*remove)(void);       /* takes the hooks and the GC callback out */
    void (*python_ended)(void); /* pointers into Python are forgotten, not released */
} kpti_installed_parts;

/* Called when the backend is opened, before anything else. PARTS stay. */
void kpti_installation_use(const kpti_installed_parts *parts);

/* To be called around every change; may be nested, as installing can run Python (audit hooks). */
void kpti_installation_enter(void);
void kpti_installation_leave(void);

/* Prepares the interpreter that runs now, if it is not. When it has ended, all that was known of it
 * is forgotten, and the next one is prepared anew. */
void kpti_installation_prepare(void);
/* Takes the hooks and the GC callback out again. */
void kpti_installation_remove(void);

/* In the child of a fork, where whoever was inside is gone. */
void kpti_installation_forked(void);

#endif
