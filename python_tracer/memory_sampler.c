#include "memory_sampler.h"

#include <dlfcn.h>
#include <string.h>

#include "memory_hooked.h"

enum { DOMAINS = 2, SMALL = 512 };

static kpti_memory_hook own[DOMAINS];

static inline int passes(size_t size)
{
    return size <= SMALL && kpti_sample_passes(&kpti_memory_until_small, size);
}

static inline void *realloc_counted(const PyMemAllocatorEx *a, void *ctx, void *block, size_t size)
{
    kpti_memory_until *until = &kpti_memory_until_next;
    until->is_counted = 1;
    block = a->realloc(ctx, block, size);
    until->is_counted = 0;
    return block;
}

#define HOOKS(name, domain, pool)                                                          \
    static void *name##_malloc(void *ctx, size_t size)                                     \
    {                                                                                      \
        if (__builtin_expect(passes(size), 1)) return own[domain].below.malloc(ctx, size); \
        return kpti_hooked_malloc(&own[domain].below, pool, ctx, size, SMALL + 1);         \
    }                                                                                      \
    static void *name##_calloc(void *ctx, size_t count, size_t size)                       \
    {                                                                                      \
        if (__builtin_expect(count <= SMALL && size <= SMALL && passes(count * size), 1))  \
            return own[domain].below.calloc(ctx, count, size);                             \
        return kpti_hooked_calloc(&own[domain].below, pool, ctx, count, size, SMALL + 1);  \
    }                                                                                      \
    static void *name##_realloc(void *ctx, void *block, size_t size)                       \
    {                                                                                      \
        if (__builtin_expect(passes(size), 1))                                             \
            return realloc_counted(&own[domain].below, ctx, block, size);                  \
        return kpti_hooked_realloc(&own[domain].below, pool, ctx, block, size, SMALL + 1); \
    }
HOOKS(mem, 0, KPTI_POOL_MEM)
HOOKS(obj, 1, KPTI_POOL_OBJ)

static kpti_memory_hook own[DOMAINS] = {
    {.domain = PYMEM_DOMAIN_MEM, .hooks = {NULL, mem_malloc, mem_calloc, mem_realloc, NULL}},
    {.domain = PYMEM_DOMAIN_OBJ, .hooks = {NULL, obj_malloc, obj_calloc, obj_realloc, NULL}},
};

int kpti_sampler_fits(void)
{
    const char *(*name_of_allocator)(void) = NULL;
    const char *name;
    /* What Python's tests ask; it is not in the headers, and may not be there. */
    *(void **)&name_of_allocator = dlsym(RTLD_DEFAULT, "_PyMem_GetCurrentAllocatorName");
    name = name_of_allocator ? name_of_allocator() : NULL;
    return name && strcmp(name, "pymalloc") == 0;
}

void kpti_sampler_install(void)
{
    for (int i = 0; i < DOMAINS; i++)
        kpti_memory_hook_put(&own[i]);
}

void kpti_sampler_remove(void)
{
    for (int i = 0; i < DOMAINS; i++)
        kpti_memory_hook_remove(&own[i]);
}
