/* kpt_registry.h: an extension of the plugin that registers further factories. Another library can
 * register a tracer factory that takes precedence over the plugin's, and remove it again.
 *
 * make calls the factories of the host's binding from the newest to the oldest. The first status
 * other than KPT_DECLINED is the result. The plugin's own factories are called last, and its no-op
 * never declines. */
#ifndef KPT_REGISTRY_H
#define KPT_REGISTRY_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_REGISTRY "kpt.registry.v1" /* fills a kpt_registry */

enum {
    KPT_FACTORY_TRACER = 1,  /* a kpt_tracer_make_fn */
    KPT_FACTORY_MEMORY = 2,  /* a kpt_memory_make_fn */
    KPT_FACTORY_OBSERVER = 3 /* a kpt_observer_make_fn */
};

typedef struct kpt_registry {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Registers a factory in front of all others. *TOKEN receives the value to pass to remove.
     * thread: any, also several at once and during make
     * GIL: not needed
     * ownership: make_ctx belongs to the caller, and must stay valid until remove has returned
     *     KPT_OK
     * errors: KPT_E_INVALID, KPT_E_UNSUPPORTED for an unknown kind, KPT_E_LIMIT, KPT_E_HANDLE
     * since: 1.0 */
    kpt_status (*add)(kpt_handle plugin, uint32_t kind, kpt_any_fn make, void *make_ctx,
                      uint64_t *token);

    /* Removes a factory: from now on no call into it begins. The objects that it made stay valid.
     * thread: any, also from inside the factory
     * GIL: not needed
     * ownership: after KPT_OK the caller may free make_ctx
     * errors: KPT_E_BUSY while a call is inside the factory: call remove again before freeing
     *     make_ctx; KPT_E_HANDLE for an unknown token or plugin
     * since: 1.0 */
    kpt_status (*remove)(kpt_handle plugin, uint64_t token);
} kpt_registry;
#define KPT_REGISTRY_V1_SIZE KPT_FIELD_END(kpt_registry, remove)

#ifdef __cplusplus
}
#endif
#endif
