#include "memory_hooks.h"

#include <stdatomic.h>

#include "cpython.h"
#include "gather.h"
#include "memory_log.h"
#include "memory_samples.h"
#include "platform.h"

enum { DOMAINS = 3 };

static PyMemAllocatorEx below[DOMAINS]; /* who had the domain before us */
static int installed[DOMAINS];

static void note_alloc(kpti_memory_inside in, uint32_t pool, const void *block, uint64_t size,
                       uint32_t resized)
{
    uint32_t stack;
    if (!kpti_sample_begins(in, (uintptr_t)block, size)) return;
    /* tracemalloc allocates raw memory with its lock held, and takes the lock for each object. */
    stack = kpti_gather_pinned(kpti_memory_log_wish(in.log)->depth, pool == KPTI_POOL_RAW);
    kpti_memory_append(in.log, in.thread, kpti_ticks(), (uintptr_t)block,
                       kpti_memory_what(KPTI_MEMORY_ALLOC | resized, pool, size), stack);
}

static void note_free(kpti_memory_inside in, uint32_t pool, uintptr_t block, uint64_t now,
                      uint32_t resized)
{
    kpti_memory_append(in.log, in.thread, now, block,
                       kpti_memory_what(KPTI_MEMORY_FREE | resized, pool, 0), 0);
}

/* Not recorded; but somebody may be looking for us. */
static inline void *passed(kpti_memory_inside in, void *block)
{
    if (in.thread && in.thread->probe) in.thread->probe = 2;
    return block;
}

/* In all four: what the allocators below allocate on their part, as the object domain's does in the raw one,
 * is inside, and not recorded twice. */
static inline void *hooked_malloc(uint32_t pool, void *ctx, size_t size)
{
    const kpti_memory_inside in = kpti_memory_enter();
    void *block = below[pool].malloc(ctx, size);
    if (!in.log) return passed(in, block);
    if (block) note_alloc(in, pool, block, size, 0);
    kpti_memory_leave(in);
    return block;
}

static inline void *hooked_calloc(uint32_t pool, void *ctx, size_t count, size_t size)
{
    const kpti_memory_inside in = kpti_memory_enter();
    void *block = below[pool].calloc(ctx, count, size);
    if (!in.log) return block;
    if (block) note_alloc(in, pool, block, (uint64_t)count * size, 0);
    kpti_memory_leave(in);
    return block;
}

static inline void *hooked_realloc(uint32_t pool, void *ctx, void *old, size_t size)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const uintptr_t before = (uintptr_t)old;
    const uint64_t now = in.log ? kpti_ticks() : 0;
    const int ends = in.log && kpti_sample_ends(in, before);
    void *block = below[pool].realloc(ctx, old, size);
    if (!in.log) return block;
    if (block && ends) note_free(in, pool, before, now, KPTI_MEMORY_RESIZED);
    if (block)
        note_alloc(in, pool, block, size, before ? KPTI_MEMORY_RESIZED : 0);
    else if (ends && kpti_memory_log_wish(in.log)->sample_bytes)
        (void)kpti_sample_add(before); /* it lives on */
    kpti_memory_leave(in);
    return block;
}

static inline void hooked_free(uint32_t pool, void *ctx, void *block)
{
    const kpti_memory_inside in = kpti_memory_enter();
    if (in.log && kpti_sample_ends(in, (uintptr_t)block))
        note_free(in, pool, (uintptr_t)block, kpti_ticks(), 0);
    below[pool].free(ctx, block);
    if (in.log) kpti_memory_leave(in);
}

/* Python hands us the context of who is below: a thread that reads the allocator's fields while they are
 * changed, as the raw domain's users may, finds any mixture of old and new ones right. So our functions
 * know their domain by themselves. */
#define HOOKS(name, pool)                                            \
    static void *name##_malloc(void *ctx, size_t size)               \
    {                                                                \
        return hooked_malloc(pool, ctx, size);                       \
    }                                                                \
    static void *name##_calloc(void *ctx, size_t count, size_t size) \
    {                                                                \
        return hooked_calloc(pool, ctx, count, size);                \
    }                                                                \
    static void *name##_realloc(void *ctx, void *block, size_t size) \
    {                                                                \
        return hooked_realloc(pool, ctx, block, size);               \
    }                                                                \
    static void name##_free(void *ctx, void *block)                  \
    {                                                                \
        hooked_free(pool, ctx, block);                               \
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

void kpti_memory_hooks_install(void)
{
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx hooks = domains[i].hooks;
        if (is_reached(i)) continue;
        PyMem_GetAllocator(domains[i].domain, &below[i]);
        hooks.ctx = below[i].ctx;
        PyMem_SetAllocator(domains[i].domain, &hooks);
        installed[i] = 1;
    }
}

void kpti_memory_hooks_remove(void)
{
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
