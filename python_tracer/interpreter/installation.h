/* installation.h: the parts that we install in the interpreter (the hooks, the GC callback, the exit
 * handler, the slot in code objects), and in which interpreter. One thread at a time changes them. The GIL
 * ensures this where there is one. A free-threaded Python needs a lock, and must be able to stop the world
 * while a thread waits for the lock, so the lock is one of Python's own.
 *
 * All functions need the GIL or a thread state. The caller holds none of our locks. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_INSTALLATION_H
#define KPTI_PYTHON_TRACER_INTERPRETER_INSTALLATION_H

/* The installed parts, implemented by the modules above this one. */
typedef struct kpti_installed_parts {
    void (*prepare)(void);      /* runs before each start: reserves the slots in code objects */
    void (*watch_exit)(void);   /* runs once per interpreter: registers the atexit callback */
    void (*remove)(void);       /* removes the hooks and the GC callback */
    void (*python_ended)(void); /* forgets pointers to Python objects without releasing them */
} kpti_installed_parts;

/* Sets the parts. Called when the backend is opened, before any other function. PARTS must stay valid. */
void kpti_installation_use(const kpti_installed_parts *parts);

/* Must be called around every change. May be nested, since installing can run Python (audit hooks). */
void kpti_installation_enter(void);
void kpti_installation_leave(void);

/* Prepares the current interpreter unless it is prepared. When it has ended, everything known of it is
 * forgotten, and the next interpreter is prepared anew. */
void kpti_installation_prepare(void);
/* Removes the hooks and the GC callback. */
void kpti_installation_remove(void);

/* Runs in the child of a fork, where the thread that was inside no longer exists. */
void kpti_installation_forked(void);

#endif
