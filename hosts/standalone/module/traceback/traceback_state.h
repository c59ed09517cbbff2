/* traceback_state.h: the Traceback object, and the state of the module. The GIL is held. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_STATE_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/kpt_traceback.h"

/* The keys of a frame, in order. */
enum {
    KPTI_KEY_NAME,
    KPTI_KEY_FILENAME,
    KPTI_KEY_LINE,
    KPTI_KEY_QUALNAME,
    KPTI_KEY_FIRST_LINE,
    KPTI_KEY_END_LINE,
    KPTI_KEY_COLUMN,
    KPTI_KEY_END_COLUMN,
    KPTI_KEY_KIND,
    KPTI_KEY_OFFSET,  /* only for Python frames */
    KPTI_KEY_ADDRESS, /* only for native frames */
    KPTI_KEYS
};
enum { KPTI_KINDS = KPT_SYMBOL_GENERATED + 1 };

/* Returns the key that only frames of this kind have, or KPTI_KEYS if there is none. */
static inline int kpti_key_of_kind(uint32_t kind)
{
    if (kind == KPT_SYMBOL_PYTHON) return KPTI_KEY_OFFSET;
    return kind == KPT_SYMBOL_NATIVE ? KPTI_KEY_ADDRESS : KPTI_KEYS;
}

/* Without a GIL, freed objects are not kept for reuse. */
#ifdef Py_GIL_DISABLED
enum { KPTI_MAX_SPARES = 1, KPTI_SPARES_ARE_KEPT = 0 };
typedef PyMutex kpti_state_lock;
#define kpti_state_take PyMutex_Lock
#define kpti_state_give PyMutex_Unlock
#else /* the GIL is the lock */
enum { KPTI_MAX_SPARES = 32, KPTI_SPARES_ARE_KEPT = 1 };
typedef struct kpti_state_lock {
    int unused;
} kpti_state_lock;
#define kpti_state_take(lock) ((void)(lock))
#define kpti_state_give(lock) ((void)(lock))
#endif

/* The state of the module, one per interpreter. */
typedef struct kpti_module_state {
    PyTypeObject *traceback_type;
    PyObject *keys[KPTI_KEYS]; /* interned */
    PyObject *kinds[KPTI_KINDS];
    PyObject *generated; /* a tuple of functions that map generated lines to frames */
    kpti_state_lock generated_lock;
    struct kpti_traceback_object *spares[KPTI_MAX_SPARES]; /* freed objects, for reuse */
    int spare_count;
} kpti_module_state;

/* Returns 0 with an exception if a collection has cleared the module and a finalizer still calls it. */
static inline int kpti_state_is_whole(const kpti_module_state *state)
{
    if (state->traceback_type) return 1;
    PyErr_SetString(PyExc_RuntimeError, "kpytrace has ended in this interpreter");
    return 0;
}

/* The object that gather returns. */
typedef struct kpti_traceback_object {
    PyObject_HEAD kpt_traceback traceback;
    uint32_t skip;    /* number of innermost frames that are not shown */
    PyObject *module; /* the module whose state has the spares */
    PyObject *words;  /* the result of the object's symbolize(), set once; or NULL */
    PyObject *weak_references;
} kpti_traceback_object;

#endif
