/* hook_template.h: what a hook in front of an allocator of Python's does: asks the one BELOW, and records.
 *
 *   in all four, what the allocators below allocate on their part, as the object domain's does in the raw one,
 *   is inside, and not recorded twice
 *   LEAST: a block that is recorded is asked for with at least so many bytes */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_HOOK_TEMPLATE_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_HOOK_TEMPLATE_H

#include "core/base/platform.h"
#include "core/memory_log/allocation_log.h"
#include "core/memory_log/sampled_blocks.h"
#include "python_tracer/capture/stack_capture.h"
#include "python_tracer/interpreter/cpython.h"

/* Our place in the chain of a domain's allocators. */
typedef struct kpti_memory_hook {
    const PyMemAllocatorDomain domain;
    const PyMemAllocatorEx hooks; /* context and free are those of below where there are none */
    PyMemAllocatorEx below;       /* who had the domain before us */
    int installed;
} kpti_memory_hook;

/* Puts it on top, or takes it away if it is there. The GIL is held.
 * Python hands us the context of who is below: a thread that reads the allocator's fields while they are
 * changed, as the raw domain's users may, finds any mixture of old and new ones right. So our functions
 * know their domain by themselves, and those that have a context of their own do without it. */
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
    /* tracemalloc allocates raw memory with its lock held, and takes the lock for each object. */
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

/* Not recorded; but somebody may be looking for us. */
static inline void *kpti_passed(kpti_memory_inside in, uint32_t pool, void *block)
{
    if (in.thread && in.thread->probe == (int)pool + 1) in.thread->probe = KPTI_MEMORY_PROBED;
    return block;
}

static inline void *kpti_hooked_malloc(const PyMemAllocatorEx *below, uint32_t pool, void *ctx,
                                       size_t size, size_t least)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const int taken = in.log && kpti_sample_begins(in, size, least);
    void *block = below->malloc(ctx, taken && size < least ? least : size);
    if (!in.log) return kpti_passed(in, pool, block);
    if (block && taken) kpti_note_alloc(in, pool, block, size, 0);
    kpti_memory_leave(in);
    return block;
}

static inline void *kpti_hooked_calloc(const PyMemAllocatorEx *below, uint32_t pool, void *ctx,
                                       size_t count, size_t size, size_t least)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const uint64_t whole = (uint64_t)count * size; /* where that wraps there is no block */
    const int taken = in.log && kpti_sample_begins(in, whole, least);
    void *block =
        taken && whole < least ? below->calloc(ctx, 1, least) : below->calloc(ctx, count, size);
    if (!in.log) return block;
    if (block && taken) kpti_note_alloc(in, pool, block, whole, 0);
    kpti_memory_leave(in);
    return block;
}

static inline void *kpti_hooked_realloc(const PyMemAllocatorEx *below, uint32_t pool, void *ctx,
                                        void *old, size_t size, size_t least)
{
    const kpti_memory_inside in = kpti_memory_enter();
    const uintptr_t before = (uintptr_t)old;
    const uint32_t ends = in.log ? kpti_sample_ends(in, before, pool) : 0;
    const uint64_t now = ends ? kpti_ticks() : 0;
    const int taken = in.log && (pool == KPTI_POOL_RAW ? kpti_sample_begins_again(in, before, size)
                                                       : kpti_sample_begins(in, size, least));
    void *block = below->realloc(ctx, old, taken && size < least ? least : size);
    if (!in.log) return block;
    if (block && ends) kpti_note_free(in, ends - 1, before, now, KPTI_MEMORY_RESIZED);
    if (block && taken)
        kpti_note_alloc(in, pool, block, size, before ? KPTI_MEMORY_RESIZED : 0);
    else if (!block && ends && kpti_memory_log_wish(in.log)->sample_bytes)
        (void)kpti_sample_add(before, ends - 1); /* it lives on */
    kpti_memory_leave(in);
    return block;
}

/* BLOCK is about to be freed. To be left, where there is a log. */
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
