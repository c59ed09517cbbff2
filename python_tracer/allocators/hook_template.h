/* hook_template.h: the body of a hook in front of a Python allocator: it calls the allocator BELOW, and
 * records.
 *
 * In all four functions, allocations by the allocators below (as the object domain's in the raw domain)
 * happen inside the hook, and are not recorded twice. MIN: a recorded block is allocated with at least
 * this many bytes. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_HOOK_TEMPLATE_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_HOOK_TEMPLATE_H

#include "core/base/platform.h"
#include "core/memory_log/allocation_log.h"
#include "core/memory_log/sampled_blocks.h"
#include "python_tracer/capture/stack_capture.h"
#include "python_tracer/interpreter/cpython.h"

/* Our hook in the chain of a domain's allocators. */
typedef struct kpti_memory_hook {
    const PyMemAllocatorDomain domain;
    const PyMemAllocatorEx hooks; /* a NULL context or free is replaced by that of below */
    PyMemAllocatorEx below;       /* the allocator of the domain before ours */
    int installed;
} kpti_memory_hook;

/* Puts the hook on top of its domain, or removes it if it is on top. The caller holds the GIL.
 *
 * Unless the hook has its own context, Python passes our functions the context of the allocator below. A
 * thread may read the allocator's fields while they change, as users of the raw domain may; any mixture of
 * old and new fields is then valid. So our functions know their domain without the context, and those that
 * have their own context also work without it. */
static inline void kpti_memory_hook_put(kpti_memory_hook *hook)
{
    PyMemAllocatorEx top = hook->hooks;
    PyMem_GetAllocator(hook->domain, &hook->below);
    if (!top.ctx) top.ctx = hook->below.ctx;
    if (!top.free) top.free = hook->below.free;
    PyMem_SetAllocator(hook->domain, &top);
    hook->installed = 1;
}

static inline void kpti_memory_hook_remove(kpti_memory_hook *hook)
{
    PyMemAllocatorEx top;
    PyMem_GetAllocator(hook->domain, &top);
    if (!hook->installed || top.malloc != hook->hooks.malloc) return;
    PyMem_SetAllocator(hook->domain, &hook->below);
    hook->installed = 0;
}

static inline void kpti_note_alloc(kpti_memory_inside in, uint32_t pool, const void *block,
                                   uint64_t size, uint32_t resized)
{
    uint32_t stack;
    if (!kpti_sample_lives(in, (uintptr_t)block, pool)) return;
    /* tracemalloc allocates raw memory with its lock held, and acquires the lock for each object. */
    stack = kpti_capture_pinned(kpti_memory_log_wish(in.log)->depth, pool == KPTI_POOL_RAW);
    kpti_memory_append(in.log, in.thread, kpti_ticks(), (uintptr_t)block,
                       kpti_memory_what(KPTI_MEMORY_ALLOC | resized, pool, size), stack);
}

static inline void kpti_note_free(kpti_memory_inside in, uint32_t pool, uintptr_t block,
                                  uint64_t now, uint32_t resized)
{
    kpti_memory_append(in.log, in.thread, now, block,
                       kpti_memory_what(KPTI_MEMORY_FREE | resized, pool, 0), 0);
}

/* The call is not recorded, but a probe may be waiting for it. */
static inline void *kpti_passed(kpti_memory_inside in, uint32_t pool, void *block)
{
    if (in.thread && in.thread->probe == (int)pool + 1) in.thread->probe = KPTI_MEMORY_PROBED;
    return block;
}

static inline void *kpti_hooked_malloc(const PyMemAllocatorEx *below, uint32_t pool, void *ctx,
                                       size_t size, size_t min)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const int taken = in.log && kpti_sample_begins(in, size, min);
    void *block = below->malloc(ctx, taken && size < min ? min : size);
    if (!in.log) return kpti_passed(in, pool, block);
    if (block && taken) kpti_note_alloc(in, pool, block, size, 0);
    kpti_memory_leave(in);
    return block;
}

static inline void *kpti_hooked_calloc(const PyMemAllocatorEx *below, uint32_t pool, void *ctx,
                                       size_t count, size_t size, size_t min)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const uint64_t whole = (uint64_t)count * size; /* if it wraps, there is no block */
    const int taken = in.log && kpti_sample_begins(in, whole, min);
    void *block =
        taken && whole < min ? below->calloc(ctx, 1, min) : below->calloc(ctx, count, size);
    if (!in.log) return block;
    if (block && taken) kpti_note_alloc(in, pool, block, whole, 0);
    kpti_memory_leave(in);
    return block;
}

static inline void *kpti_hooked_realloc(const PyMemAllocatorEx *below, uint32_t pool, void *ctx,
                                        void *old, size_t size, size_t min)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const uintptr_t before = (uintptr_t)old;
    const uint32_t ends = in.log ? kpti_sample_ends(in, before, pool) : 0;
    const uint64_t now = ends ? kpti_ticks() : 0;
    const int taken = in.log && (pool == KPTI_POOL_RAW ? kpti_sample_begins_again(in, before, size)
                                                       : kpti_sample_begins(in, size, min));
    void *block = below->realloc(ctx, old, taken && size < min ? min : size);
    if (!in.log) return block;
    if (block && ends) kpti_note_free(in, ends - 1, before, now, KPTI_MEMORY_RESIZED);
    if (block && taken)
        kpti_note_alloc(in, pool, block, size, before ? KPTI_MEMORY_RESIZED : 0);
    else if (!block && ends && kpti_memory_log_wish(in.log)->sample_bytes)
        (void)kpti_sample_add(before, ends - 1); /* the old block stays alive */
    kpti_memory_leave(in);
    return block;
}

/* Records the end of BLOCK, which is about to be freed. If the result has a log, the caller must call
 * kpti_memory_leave. */
static inline kpti_memory_inside kpti_hooked_end(uint32_t pool, const void *block)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const uint32_t ends = in.log ? kpti_sample_ends(in, (uintptr_t)block, pool) : 0;
    if (ends) kpti_note_free(in, ends - 1, (uintptr_t)block, kpti_ticks(), 0);
    return in;
}

static inline void kpti_hooked_free(const PyMemAllocatorEx *below, uint32_t pool, void *ctx,
                                    void *block)
{
    const kpti_memory_inside in = kpti_hooked_end(pool, block);
    below->free(ctx, block);
    if (in.log) kpti_memory_leave(in);
}

#endif
