/* find_python.h: finds the CPython of this process: its path, its version, and whether it can be used now. It
 * needs no symbol of Python at link time, and calls only CPython functions that are legal without the GIL and
 * before initialisation. */
#ifndef KPTI_PLUGIN_PYTHON_FIND_PYTHON_H
#define KPTI_PLUGIN_PYTHON_FIND_PYTHON_H

#include <limits.h>

typedef enum kpti_python_state {
    KPTI_PYTHON_ABSENT = 0, /* no object of this process exports CPython's functions */
    KPTI_PYTHON_ASLEEP = 1, /* CPython is loaded, but not initialised, or already finalised */
    KPTI_PYTHON_ENDING = 2, /* CPython is being finalised; it still reports this afterwards */
    KPTI_PYTHON_READY = 3   /* CPython is initialised */
} kpti_python_state;

typedef struct kpti_python {
    kpti_python_state state;
    int major;
    int minor;
    int free_threaded;
    int in_executable;
    char version[128];   /* the first line of Py_GetVersion's text */
    char path[PATH_MAX]; /* of the object; the target of /proc/self/exe if it is the executable */
} kpti_python;

/* Searches again at each call, since Python may be loaded and finalised while the plugin stays. If the process
 * has several CPythons, it selects an initialised one, otherwise one that is being finalised, otherwise the
 * first. */
void kpti_find_python(kpti_python *out);

/* Parses the text of Py_GetVersion. Returns 0 if it is not a version of CPython 3. */
int kpti_parse_python_version(const char *text, kpti_python *out);

#endif
