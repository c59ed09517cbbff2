#include "python_tracer/allocators/pymalloc_sampler.h"

#include <dlfcn.h>
#include <string.h>

#include "python_tracer/allocators/hook_template.h"
#include "python_tracer/interpreter/cpython.h"

enum { DOMAINS = 2, SMALL = 512, FACTOR_BITS = 16 /* a product of two can't wrap */ };

static kpti_memory_hook own[DOMAINS];

static inline int passes(kpti_memory_small *small, size_t size)
{
    return kpti_sample_passes(&small->until, size, SMALL);
}

/* For most blocks a hook takes a dozen instructions. The slow path is a function with the same arguments,
 * so that both paths end in one jump and no argument has to be saved. A resize of NULL is an allocation.
 * The context is ours, so that it need not be looked up; it is also passed down to pymalloc, which ignores
 * it. While our hooks are installed or removed, another interpreter with its own GIL may still pass
 * pymalloc's context, which is NULL. */
#define HOOKS(name, domain, pool)                                                                  \
    static __attribute__((noinline)) void *name##_malloc_slow(void *ctx, size_t size)              \
    {                                                                                              \
        return kpti_hooked_malloc(&own[domain].below, pool, ctx, size, SMALL + 1);                 \
    }                                                                                              \
    static void *name##_malloc(void *ctx, size_t size)                                             \
    {                                                                                              \
        void *(*way)(void *, size_t) = name##_malloc_slow;                                         \
        if (__builtin_expect(ctx && passes(ctx, size), 1))                                         \
            way = ((kpti_memory_small *)ctx)->malloc[domain];                                      \
        return way(ctx, size);                                                                     \
    }                                                                                              \
    static                                                                                         \
        __attribute__((noinline)) void *name##_calloc_slow(void *ctx, size_t count, size_t size)   \
    {                                                                                              \
        return kpti_hooked_calloc(&own[domain].below, pool, ctx, count, size, SMALL + 1);          \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t count, size_t size)                               \
    {                                                                                              \
        void *(*way)(void *, size_t, size_t) = name##_calloc_slow;                                 \
        if (__builtin_expect(ctx && !((count | size) >> FACTOR_BITS) && passes(ctx, count * size), \
                             1))                                                                   \
            way = ((kpti_memory_small *)ctx)->calloc[domain];                                      \
        return way(ctx, count, size);                                                              \
    }                                                                                              \
    static                                                                                         \
        __attribute__((noinline)) void *name##_realloc_slow(void *ctx, void *block, size_t size)   \
    {                                                                                              \
        return kpti_hooked_realloc(&own[domain].below, pool, ctx, block, size, SMALL + 1);         \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *block, size_t size)                               \
    {                                                                                              \
        kpti_memory_small *small = ctx;                                                            \
        void *(*way)(void *, void *, size_t) = name##_realloc_slow;                                \
        if (!block) return name##_malloc(ctx, size);                                               \
        if (__builtin_expect(small && passes(small, size), 1)) {                                   \
            atomic_store_explicit(&small->resized, (uintptr_t)block, memory_order_relaxed);        \
            way = small->realloc[domain];                                                          \
        }                                                                                          \
        return way(ctx, block, size);                                                              \
    }
HOOKS(mem, 0, KPTI_POOL_MEM)
HOOKS(obj, 1, KPTI_POOL_OBJ)

static kpti_memory_hook own[DOMAINS] = {
    {.domain = PYMEM_DOMAIN_MEM,
     .hooks = {&kpti_memory_of_small, mem_malloc, mem_calloc, mem_realloc, NULL}},
    {.domain = PYMEM_DOMAIN_OBJ,
     .hooks = {&kpti_memory_of_small, obj_malloc, obj_calloc, obj_realloc, NULL}},
};

int kpti_sampler_fits(void)
{
    const char *(*name_of_allocator)(void) = NULL;
    const char *name;
    /* Used by Python's tests; not in the headers, and may be missing. */
    *(void **)&name_of_allocator = dlsym(RTLD_DEFAULT, "_PyMem_GetCurrentAllocatorName");
    name = name_of_allocator ? name_of_allocator() : NULL;
    return name && strcmp(name, "pymalloc") == 0;
}

void kpti_sampler_install(void)
{
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx below;
        PyMem_GetAllocator(own[i].domain, &below);
        kpti_memory_of_small.malloc[i] = below.malloc; /* set before our hooks are installed */
        kpti_memory_of_small.calloc[i] = below.calloc;
        kpti_memory_of_small.realloc[i] = below.realloc;
        kpti_memory_hook_put(&own[i]);
    }
}

void kpti_sampler_remove(void)
{
    for (int i = 0; i < DOMAINS; i++)
        kpti_memory_hook_remove(&own[i]);
}
