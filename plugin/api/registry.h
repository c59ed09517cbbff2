/* registry.h: the factories that others put in front of the plugin's own, per host. Newest first;
 * one that declines passes the question on. Changes are atomic beside running makes: the table's
 * lock of handle.h guards the list, and no factory runs under it. */
#ifndef KPTI_PLUGIN_API_REGISTRY_H
#define KPTI_PLUGIN_API_REGISTRY_H

#include "abi/impl/kpti_impl.h"

enum { KPTI_MOST_FACTORIES = 32 };

typedef struct kpti_factory {
    uint64_t token; /* greater than those of all that were added before; 0: a free place */
    kpt_any_fn make;
    void *make_ctx;
    uint32_t kind;  /* KPT_FACTORY_* */
    uint32_t calls; /* that are inside it now */
    int removed;    /* no new call may begin; the place is free when calls is 0 */
} kpti_factory;

typedef struct kpti_registry {
    kpti_factory factories[KPTI_MOST_FACTORIES];
    uint64_t last_token;
} kpti_registry;

kpt_status kpti_registry_add(kpti_registry *registry, uint32_t kind, kpt_any_fn make,
                             void *make_ctx, uint64_t *token);
kpt_status kpti_registry_remove(kpti_registry *registry, uint64_t token);

/* Calls ASK for the factories of KIND, newest first, until one does not answer KPT_DECLINED;
 * returns that answer, or KPT_DECLINED. Factories may be added and removed meanwhile, also by ASK.
 */
kpt_status kpti_registry_ask(kpti_registry *registry, uint32_t kind,
                             kpt_status (*ask)(kpt_any_fn make, void *make_ctx, void *job),
                             void *job);

/* What the extension KPT_EXT_REGISTRY gives to hosts. */
extern const kpt_registry kpti_registry_table;

#endif
