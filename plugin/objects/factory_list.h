/* factory_list.h: the factories that libraries added for one host. They are called before the plugin's own
 * factory, newest first; the next factory is called if one declines. Factories may be added and removed while
 * make calls run. The lock of handle.h guards the list, and no factory runs under that lock. */
#ifndef KPTI_PLUGIN_OBJECTS_FACTORY_LIST_H
#define KPTI_PLUGIN_OBJECTS_FACTORY_LIST_H

#include "abi/impl/kpti_impl.h"
#include "core/base/assert.h"

enum { KPTI_MAX_FACTORIES = 32 };

typedef struct kpti_factory {
    uint64_t token; /* greater than that of every earlier factory; 0 in a free slot */
    kpt_any_fn make;
    void *make_ctx;
    uint32_t kind;  /* KPT_FACTORY_* */
    uint32_t calls; /* calls that run now */
    int removed;    /* no new call may begin; remove frees the slot once calls is 0 */
} kpti_factory;

typedef struct kpti_registry {
    kpti_factory factories[KPTI_MAX_FACTORIES];
    uint64_t last_token;
} kpti_registry;

static inline int kpti_factory_is_valid(const kpti_factory *f)
{
    return f->token ? f->make != NULL : f->calls == 0;
}

kpt_status kpti_registry_add(kpti_registry *registry, uint32_t kind, kpt_any_fn make,
                             void *make_ctx, uint64_t *token);
kpt_status kpti_registry_remove(kpti_registry *registry, uint64_t token);

/* Calls ASK for the factories of KIND, newest first, until one does not return KPT_DECLINED. Returns that
 * status, or KPT_DECLINED. Factories may be added and removed meanwhile, also by ASK. */
kpt_status kpti_registry_ask(kpti_registry *registry, uint32_t kind,
                             kpt_status (*ask)(kpt_any_fn make, void *make_ctx, void *job),
                             void *job);

#endif
