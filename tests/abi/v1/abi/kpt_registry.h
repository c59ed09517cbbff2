/* kpt_registry.h: factories beside the plugin's own, an extension of the plugin: another library
 * can put a tracer in front of ours, and take it away again.
 *
 * The host's make asks the factories of its bond from the newest to the oldest. The first answer
 * that is not KPT_DECLINED counts; the plugin's own come last and its no-op never declines. */
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

    /* Puts a factory in front of all others; TOKEN receives what remove takes.
     * thread: any, also several at once and beside make
     * GIL: not needed
     * ownership: make_ctx stays the caller's, and must live until remove has answered KPT_OK
     * errors: KPT_E_INVALID, KPT_E_UNSUPPORTED for an unknown kind, KPT_E_LIMIT, KPT_E_HANDLE
     * since: 1.0 */
    kpt_status (*add)(kpt_handle plugin, uint32_t kind, kpt_any_fn make, void *make_ctx,
                      uint64_t *token);

    /* Takes a factory away: no call into it begins from now on. Objects that it made live on.
     * thread: any, also from inside the factory
     * GIL: not needed
     * ownership: after KPT_OK make_ctx may be freed
     * errors: KPT_E_BUSY while a call is inside the factory: call again before make_ctx is freed;
     *         KPT_E_HANDLE for an unknown token or plugin
     * since: 1.0 */
    kpt_status (*remove)(kpt_handle plugin, uint64_t token);
} kpt_registry;
#define KPT_REGISTRY_V1_SIZE KPT_FIELD_END(kpt_registry, remove)

#ifdef __cplusplus
}
#endif
#endif
