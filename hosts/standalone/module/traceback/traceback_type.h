/* traceback_type.h: tracebacks as the module's own files know them: the type Traceback, the module's
 * state, and a batch that is being symbolized. The GIL is held but where a batch has released it. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_TYPE_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_TYPE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/standalone/session/shared_tracebacks.h"

/* The keys of a frame, in their order. */
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
    KPTI_KEY_OFFSET,  /* of Python frames only */
    KPTI_KEY_ADDRESS, /* of native frames only */
    KPTI_KEYS
};
enum { KPTI_KINDS = KPT_SYMBOL_GENERATED + 1 };
extern const char *const kpti_frame_keys[KPTI_KEYS];

/* The key of what only frames of this kind have; KPTI_KEYS: they have nothing. */
static inline int kpti_key_of_kind(uint32_t kind)
{
    if (kind == KPT_SYMBOL_PYTHON) return KPTI_KEY_OFFSET;
    return kind == KPT_SYMBOL_NATIVE ? KPTI_KEY_ADDRESS : KPTI_KEYS;
}
extern const char *const kpti_frame_kinds[KPTI_KINDS];

/* With no GIL nobody could tell whose turn it is. */
#ifdef Py_GIL_DISABLED
enum { KPTI_MOST_SPARES = 1, KPTI_SPARES_ARE_KEPT = 0 };
typedef PyMutex kpti_state_lock;
#define kpti_state_take PyMutex_Lock
#define kpti_state_give PyMutex_Unlock
#else /* it is the lock */
enum { KPTI_MOST_SPARES = 32, KPTI_SPARES_ARE_KEPT = 1 };
typedef struct kpti_state_lock {
    int unused;
} kpti_state_lock;
#define kpti_state_take(lock) ((void)(lock))
#define kpti_state_give(lock) ((void)(lock))
#endif

/* The module's, once in each interpreter. */
typedef struct kpti_module_state {
    PyTypeObject *traceback_type;
    PyObject *keys[KPTI_KEYS]; /* interned */
    PyObject *kinds[KPTI_KINDS];
    PyObject *generated; /* a tuple of functions: what generated lines stand for */
    kpti_state_lock generated_lock;
    struct kpti_traceback_object *spares[KPTI_MOST_SPARES]; /* freed objects, to be used again */
    int spare_count;
} kpti_module_state;

/* 0 with an exception: a collection has cleared the module, and a finalizer calls it still. */
static inline int kpti_state_is_whole(const kpti_module_state *state)
{
    if (state->traceback_type) return 1;
    PyErr_SetString(PyExc_RuntimeError, "kpytrace has ended in this interpreter");
    return 0;
}

/* What gather returns. */
typedef struct kpti_traceback_object {
    PyObject_HEAD kpt_traceback traceback;
    uint32_t skip;    /* so many of the innermost frames are not shown */
    PyObject *module; /* whose state has the spares */
    PyObject *words;  /* what symbolize() of the object gave, set once; or NULL */
    PyObject *weak_references;
} kpti_traceback_object;

/* A sequence of them that is being symbolized. */
typedef struct kpti_batch {
    kpti_module_state *state;
    PyObject *objects; /* a tuple, so that they stay */
    kpt_traceback *tracebacks;
    uint32_t *skips; /* of the objects */
    uint64_t count;
    PyObject *generated;     /* the state's, as they were */
    PyObject *codecache;     /* torch's function for lines of its generated code, or NULL */
    PyThreadState *released; /* NULL: the GIL is held */
    int single;              /* the JSON of one traceback, not of a list of them */
    PyObject *result;
} kpti_batch;

/* The frames of the traceback of INDEX that it shows: what was generated for one that it does not is not
 * shown either. */
static inline kpt_symbol_span kpti_shown(const kpti_batch *batch, uint64_t index,
                                         const kpt_symbols *symbols)
{
    kpt_symbol_span span = symbols->spans[index];
    uint32_t left = batch->skips[index];
    if (!left) return span;
    for (; span.count; span.first++, span.count--) {
        const char *at = (const char *)symbols->symbols +
                         (size_t)symbols->frames[span.first] * symbols->symbol_stride;
        const int generated = ((const kpt_symbol *)at)->kind == KPT_SYMBOL_GENERATED;
        if (!generated && !left) break;
        left -= !generated;
    }
    return span;
}

/* Sinks, with a batch: the result is a list of lists of dictionaries; a string. */
kpt_status kpti_traceback_words(void *ctx, const kpt_symbols *symbols);
kpt_status kpti_traceback_json(void *ctx, const kpt_symbols *symbols);

/* Calls the plugin with BATCH, and returns its result; NULL with an exception. RELEASE: without the GIL,
 * but for what needs it. */
PyObject *kpti_batch_run(kpti_batch *batch, kpt_symbols_fn sink, int release);
/* Around what needs it, inside of that. */
void kpti_batch_take_gil(kpti_batch *batch);
void kpti_batch_give_gil(kpti_batch *batch);

/* The batch that the calling thread is symbolizing; NULL: none. */
kpti_batch *kpti_batch_current(void);

/* torch's function, if torch has generated any code in this process; a new reference or NULL, never an
 * exception. */
PyObject *kpti_find_codecache(void);
/* The plugin's question what a line stands for, answered by Python. */
void kpti_generated(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx);

/* The process's object; NULL with an exception. */
const kpt_tracebacks *kpti_need_tracebacks(void);
PyObject *kpti_raise_traceback(kpt_status status, const char *what);

/* The functions of a list, a tuple … of tracebacks, and of one. */
PyObject *kpti_symbolize(kpti_module_state *state, PyObject *sequence, kpt_symbols_fn sink,
                         int single);

/* A new object, not yet tracked, its traceback and skip not filled in; NULL with an exception. */
kpti_traceback_object *kpti_new_traceback(PyObject *module, kpti_module_state *state);
void kpti_free_spares(kpti_module_state *state);

/* Adds all of it to MODULE. 0, or -1 with an exception. */
int kpti_add_tracebacks(PyObject *module);
PyTypeObject *kpti_make_traceback_type(PyObject *module);

#endif
