/* name_class.h: what the analysis of findings.h knows of a function by its name and file: which C functions wait, which
 * functions of the library wait on behalf of their callers, and the module that a function belongs to. */
#ifndef KPTI_WRITERS_FINDINGS_NAME_CLASS_H
#define KPTI_WRITERS_FINDINGS_NAME_CLASS_H

#include "abi/kpt_activity.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kpti_name_class {
    KPTI_CLASS_OTHER, /* the program's, or of a library that does not wait */
    /* C functions that wait */
    KPTI_CLASS_LOCK,    /* acquire of a lock */
    KPTI_CLASS_WORK,    /* SimpleQueue.get, join of a thread */
    KPTI_CLASS_SLEEP,   /* time.sleep */
    KPTI_CLASS_POLL,    /* epoll.poll, select, accept */
    KPTI_CLASS_PROCESS, /* waitpid and its kin */
    KPTI_CLASS_COLLECT, /* gc.collect, which does not wait */
    /* Python functions of threading, queue, concurrent.futures and selectors */
    KPTI_CLASS_LIBRARY_LOCK, /* waits for a lock, such as Semaphore.acquire */
    KPTI_CLASS_LIBRARY_WORK, /* waits for another thread to do something, such as Queue.get */
    KPTI_CLASS_LIBRARY,      /* calls the program's functions, or waits as what it calls does */
    KPTI_CLASS_WORK_ITEM     /* runs a function of the program that a pool was asked to run */
} kpti_name_class;

/* Whether a call of this class is one of a C function that waits. */
static inline int kpti_class_waits(uint32_t kind)
{
    return kind >= KPTI_CLASS_LOCK && kind <= KPTI_CLASS_PROCESS;
}

static inline int kpti_class_is_library(uint32_t kind)
{
    return kind >= KPTI_CLASS_LIBRARY_LOCK;
}

kpti_name_class kpti_class_of(const kpt_name *name);

/* Returns the module of a Python function: the package below site-packages, the module of Python's library, or the last
 * two parts of the file's path. It is a part of the file's text. */
kpt_str kpti_module_of(kpt_str file);

#ifdef __cplusplus
}
#endif
#endif
