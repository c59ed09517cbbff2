/* find_python.h: is there a CPython in this process, where, which, and can it be used now?
 * Needs no symbol of Python's at link time and calls nothing but functions of CPython that are
 * legal without the GIL and before initialisation. */
#ifndef KPTI_PLUGIN_PYTHON_FIND_PYTHON_H
#define KPTI_PLUGIN_PYTHON_FIND_PYTHON_H

#include <limits.h>

typedef enum kpti_python_state {
    KPTI_PYTHON_ABSENT = 0, /* no object of this process exports CPython's functions */
    KPTI_PYTHON_ASLEEP = 1, /* it is here, but not initialised, or finalised already */
    KPTI_PYTHON_ENDING = 2, /* it is being finalised; afterwards it still says so */
    KPTI_PYTHON_READY = 3   /* it is initialised */
} kpti_python_state;

typedef struct kpti_python {
    kpti_python_state state;
    int major;
    int minor;
    int free_threaded;
    int in_executable;
    char version[128];   /* as Python tells it, to the first line's end */
    char path[PATH_MAX]; /* of the object; of the executable, /proc/self/exe's target */
} kpti_python;

/* Looks anew each time: Python may come and go while the plugin stays. With several in one process
 * the one that is initialised is taken, then the first. */
void kpti_find_python(kpti_python *out);

/* Parses what Py_GetVersion returns. 0 if it is not a version of CPython 3. */
int kpti_parse_python_version(const char *text, kpti_python *out);

#endif
