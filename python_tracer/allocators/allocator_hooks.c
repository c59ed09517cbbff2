#include "python_tracer/allocators/allocator_hooks.h"

#include <stdatomic.h>

#include "python_tracer/allocators/hook_probe.h"
#include "python_tracer/allocators/hook_template.h"
#include "python_tracer/allocators/numpy_hooks.h"
#include "python_tracer/allocators/pymalloc_sampler.h"
#include "python_tracer/interpreter/cpython.h"

enum { DOMAINS = 3 };

static kpti_memory_hook own[DOMAINS];

#define HOOKS(name, pool)                                                        \
    static void *name##_malloc(void *ctx, size_t size)                           \
    {                                                                            \
        return kpti_hooked_malloc(&own[pool].below, pool, ctx, size, 0);         \
    }                                                                            \
    static void *name##_calloc(void *ctx, size_t count, size_t size)             \
    {                                                                            \
        return kpti_hooked_calloc(&own[pool].below, pool, ctx, count, size, 0);  \
    }                                                                            \
    static void *name##_realloc(void *ctx, void *block, size_t size)             \
    {                                                                            \
        return kpti_hooked_realloc(&own[pool].below, pool, ctx, block, size, 0); \
    }                                                                            \
    static void name##_free(void *ctx, void *block)                              \
    {                                                                            \
        kpti_hooked_free(&own[pool].below, pool, ctx, block);                    \
    }
HOOKS(raw, KPTI_POOL_RAW)
HOOKS(mem, KPTI_POOL_MEM)
HOOKS(obj, KPTI_POOL_OBJ)

static kpti_memory_hook own[DOMAINS] = {
    [KPTI_POOL_RAW] = {.domain = PYMEM_DOMAIN_RAW,
                       .hooks = {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free}},
    [KPTI_POOL_MEM] = {.domain = PYMEM_DOMAIN_MEM,
                       .hooks = {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free}},
    [KPTI_POOL_OBJ] = {.domain = PYMEM_DOMAIN_OBJ,
                       .hooks = {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free}},
};

static void allocate_raw(void)
{
    PyMem_RawFree(PyMem_RawMalloc(1));
}

static void allocate_mem(void)
{
    PyMem_Free(PyMem_Malloc(1));
}

static void allocate_obj(void)
{
    PyObject_Free(PyObject_Malloc(1));
}

static void (*const allocate[DOMAINS])(void) = {
    [KPTI_POOL_RAW] = allocate_raw, [KPTI_POOL_MEM] = allocate_mem, [KPTI_POOL_OBJ] = allocate_obj};

/* Whether allocations reach our hook in DOMAIN. A hook below ours that is removed before ours takes ours
 * out of the chain, since it restores the allocator below itself. */
static int is_reached(int domain)
{
    return own[domain].installed && kpti_memory_hook_is_reached((uint32_t)domain, allocate[domain]);
}

void kpti_memory_hooks_install(int sampled)
{
    int with_sampler;
    kpti_memory_hooks_remove(); /* in the child of a fork the parent's are installed */
    with_sampler = sampled && kpti_sampler_fits();
    if (with_sampler) kpti_sampler_install();
    for (int i = 0; i < DOMAINS; i++)
        if (!(with_sampler && i != KPTI_POOL_RAW) && !is_reached(i)) kpti_memory_hook_put(&own[i]);
    kpti_numpy_hooks_install();
}

void kpti_memory_hooks_remove(void)
{
    kpti_sampler_remove();
    kpti_numpy_hooks_remove();
    for (int i = 0; i < DOMAINS; i++)
        kpti_memory_hook_remove(&own[i]);
}

void kpti_memory_hooks_end(kpti_memory_log *log)
{
    PyThreadState *attached = kpti_python_is_ending() ? NULL : kpti_attached();
    if (attached) (void)PyEval_SaveThread();
    kpti_memory_log_end(log);
    if (attached) PyEval_RestoreThread(attached);
}

void kpti_memory_hooks_exit(void)
{
    kpti_memory_log *log = atomic_load(&kpti_memory_active);
    if (log) kpti_memory_hooks_end(log);
    kpti_memory_hooks_remove();
}
