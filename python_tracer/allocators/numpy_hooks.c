#include "python_tracer/allocators/numpy_hooks.h"

#include "python_tracer/allocators/hook_probe.h"
#include "python_tracer/allocators/hook_template.h"
#include "python_tracer/interpreter/cpython.h"

/* The struct of numpy's headers; we need nothing else of them. */
typedef struct numpy_handler {
    char name[127];
    uint8_t version; /* 1: the fields below exist */
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t size);
    void *(*realloc)(void *ctx, void *block, size_t size);
    void (*free)(void *ctx, void *block, size_t size);
} numpy_handler;

/* Indices in numpy's table of functions, _ARRAY_API, and the first feature version with handlers. */
enum { FEATURE_VERSION = 211, DEFAULT_HANDLER = 306, WITH_HANDLERS = 0xF };

static numpy_handler *handler; /* numpy's, lives as long as the process; NULL: not found yet */
static PyMemAllocatorEx below; /* the functions before ours; its free has another type */
static void (*below_free)(void *ctx, void *block, size_t size);

static void *hooked_malloc(void *ctx, size_t size)
{
    return kpti_hooked_malloc(&below, KPTI_POOL_NUMPY, ctx, size, 0);
}

static void *hooked_calloc(void *ctx, size_t count, size_t size)
{
    return kpti_hooked_calloc(&below, KPTI_POOL_NUMPY, ctx, count, size, 0);
}

static void *hooked_realloc(void *ctx, void *block, size_t size)
{
    return kpti_hooked_realloc(&below, KPTI_POOL_NUMPY, ctx, block, size, 0);
}

static void hooked_free(void *ctx, void *block, size_t size)
{
    const kpti_memory_inside in = kpti_hooked_end(KPTI_POOL_NUMPY, block);
    below_free(ctx, block, size);
    if (in.log) kpti_memory_leave(in);
}

/* Returns the handler that _ARRAY_API refers to, or NULL if this numpy has none. */
static numpy_handler *handler_in(void *const *api)
{
    unsigned int (*feature_version)(void) = NULL;
    PyObject *capsule;
    numpy_handler *found;
    *(void **)&feature_version = api[FEATURE_VERSION];
    if (feature_version() < WITH_HANDLERS) return NULL;
    capsule = *(PyObject **)api[DEFAULT_HANDLER];
    found = capsule ? PyCapsule_GetPointer(capsule, "mem_handler") : NULL;
    return found && found->version == 1 ? found : NULL;
}

static numpy_handler *find_handler(void)
{
    static const char *const names[] = {"numpy._core._multiarray_umath",
                                        "numpy.core._multiarray_umath"}; /* before 2.0 */
    numpy_handler *found = NULL;
    for (int i = 0; i < 2 && !found; i++) {
        PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), names[i]);
        PyObject *api = module ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
        if (api && PyCapsule_IsValid(api, NULL))
            found = handler_in(PyCapsule_GetPointer(api, NULL));
        Py_XDECREF(api);
        PyErr_Clear();
    }
    return found;
}

static void allocate_one(void)
{
    void *block = handler->malloc(handler->ctx, 1);
    if (block) handler->free(handler->ctx, block, 1);
}

/* If a function is still ours it was never removed, so the function below it stays. The fields are numpy's, so they
 * are not _Atomic. */
#define PUT(under, name)                                                   \
    if (handler->name != hooked_##name) {                                  \
        (under) = handler->name;                                           \
        __atomic_store_n(&handler->name, hooked_##name, __ATOMIC_RELEASE); \
    }

void kpti_numpy_hooks_install(void)
{
    const int is_first = !handler;
    if (is_first) handler = find_handler();
    if (!handler || (!is_first && kpti_memory_hook_is_reached(KPTI_POOL_NUMPY, allocate_one)))
        return;
    PUT(below.malloc, malloc)
    PUT(below.calloc, calloc)
    PUT(below.realloc, realloc)
    PUT(below_free, free)
}

static int is_on_top(void)
{
    return handler && handler->malloc == hooked_malloc && handler->calloc == hooked_calloc &&
           handler->realloc == hooked_realloc && handler->free == hooked_free;
}

#define TAKE(under, name)                                                                    \
    {                                                                                        \
        __typeof__(handler->name) ours = hooked_##name;                                      \
        (void)__atomic_compare_exchange_n(&handler->name, &ours, under, 0, __ATOMIC_RELEASE, \
                                          __ATOMIC_RELAXED);                                 \
    }

void kpti_numpy_hooks_remove(void)
{
    if (!is_on_top())
        return; /* a later hook may have wrapped only some of ours: all of ours stay */
    TAKE(below.malloc, malloc)
    TAKE(below.calloc, calloc)
    TAKE(below.realloc, realloc)
    TAKE(below_free, free)
}
