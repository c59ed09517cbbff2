#include "memory_hooks.h"

#include <stdatomic.h>

#include "memory_hooked.h"
#include "memory_sampler.h"

enum { DOMAINS = 3 };

static PyMemAllocatorEx below[DOMAINS]; /* who had the domain before us */
static int installed[DOMAINS];

/* Python hands us the context of who is below: a thread that reads the allocator's fields while they are
 * changed, as the raw domain's users may, finds any mixture of old and new ones right. So our functions
 * know their domain by themselves. */
#define HOOKS(name, pool)                                                    \
    static void *name##_malloc(void *ctx, size_t size)                       \
    {                                                                        \
        return kpti_hooked_malloc(&below[pool], pool, ctx, size, 0);         \
    }                                                                        \
    static void *name##_calloc(void *ctx, size_t count, size_t size)         \
    {                                                                        \
        return kpti_hooked_calloc(&below[pool], pool, ctx, count, size, 0);  \
    }                                                                        \
    static void *name##_realloc(void *ctx, void *block, size_t size)         \
    {                                                                        \
        return kpti_hooked_realloc(&below[pool], pool, ctx, block, size, 0); \
    }                                                                        \
    static void name##_free(void *ctx, void *block)                          \
    {                                                                        \
        kpti_hooked_free(&below[pool], pool, ctx, block);                    \
    }
HOOKS(raw, KPTI_POOL_RAW)
HOOKS(mem, KPTI_POOL_MEM)
HOOKS(obj, KPTI_POOL_OBJ)

static const struct domain {
    PyMemAllocatorDomain domain;
    PyMemAllocatorEx hooks;
} domains[DOMAINS] = {
    [KPTI_POOL_RAW] = {PYMEM_DOMAIN_RAW, {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free}},
    [KPTI_POOL_MEM] = {PYMEM_DOMAIN_MEM, {NULL, mem_malloc, mem_calloc, mem_realloc, mem_free}},
    [KPTI_POOL_OBJ] = {PYMEM_DOMAIN_OBJ, {NULL, obj_malloc, obj_calloc, obj_realloc, obj_free}},
};

static void *allocate(int domain)
{
    return domain == KPTI_POOL_RAW   ? PyMem_RawMalloc(1)
           : domain == KPTI_POOL_MEM ? PyMem_Malloc(1)
                                     : PyObject_Malloc(1);
}

static void release(int domain, void *block)
{
    if (domain == KPTI_POOL_RAW)
        PyMem_RawFree(block);
    else if (domain == KPTI_POOL_MEM)
        PyMem_Free(block);
    else
        PyObject_Free(block);
}

/* Whether DOMAIN's calls come to our hook. One that was below ours takes it out of the chain where it goes
 * before we do: it puts back who was below itself. */
static int is_reached(int domain)
{
    kpti_memory_thread *thread = kpti_memory_thread_get();
    int reached;
    if (!thread || !installed[domain]) return installed[domain];
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed); /* so that it is not recorded */
    thread->probe = 1;
    release(domain, allocate(domain));
    reached = thread->probe == 2;
    thread->probe = 0;
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
    return reached;
}

void kpti_memory_hooks_install(int sampled)
{
    const int with_sampler = sampled && kpti_sampler_fits();
    if (with_sampler) kpti_sampler_install();
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx hooks = domains[i].hooks;
        if ((with_sampler && i != KPTI_POOL_RAW) || is_reached(i)) continue;
        PyMem_GetAllocator(domains[i].domain, &below[i]);
        hooks.ctx = below[i].ctx;
        PyMem_SetAllocator(domains[i].domain, &hooks);
        installed[i] = 1;
    }
}

void kpti_memory_hooks_remove(void)
{
    kpti_sampler_remove();
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx top;
        PyMem_GetAllocator(domains[i].domain, &top);
        if (!installed[i] || top.malloc != domains[i].hooks.malloc) continue;
        PyMem_SetAllocator(domains[i].domain, &below[i]);
        installed[i] = 0;
    }
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
