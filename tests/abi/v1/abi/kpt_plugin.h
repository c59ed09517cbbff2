/* kpt_plugin.h: the door: the one symbol that a plugin exports, and what it tells the host. */
#ifndef KPT_PLUGIN_H
#define KPT_PLUGIN_H

#include "kpt_base.h"
#include "kpt_host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_PLUGIN_ENTRY_NAME "kpt_plugin_entry_v1"

typedef struct kpt_plugin_info {
    uint32_t struct_size; /* the caller's size; on return, how much of it is filled */
    uint32_t abi_minor;   /* KPT_ABI_MINOR that the plugin was built with */
    kpt_handle self;      /* this host's bond with the plugin; 0 if the entry failed */
    kpt_str name;         /* static strings */
    kpt_str version;

    /* Why the last call of a factory failed; with self 0, why the last entry in this process did.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* KPT_EXT_REGISTRY (kpt_registry.h).
     * thread: any
     * GIL: not needed
     * ownership: as the extension says
     * errors: as kpt_get_extension_fn
     * since: 1.0 */
    kpt_get_extension_fn get_extension;

    /* Ends the bond and gives back all memory of the host's allocator. The library stays loaded.
     * thread: any
     * GIL: not needed
     * ownership: self and every make_ctx of this entry are dead: calls answer KPT_E_HANDLE
     * errors: KPT_E_STATE while an object made through this host is alive, KPT_E_HANDLE
     * since: 1.0 */
    kpt_status (*detach)(kpt_handle self);
} kpt_plugin_info;
#define KPT_PLUGIN_INFO_V1_SIZE KPT_FIELD_END(kpt_plugin_info, detach)

/* Checks the host's table, registers the factories with it, and fills OUT. May be called again, by
 * the same host or another: each call is a bond of its own. Prints nothing, unless KPYTRACE_VERBOSE
 * is set. On an error nothing is registered and no memory kept; OUT then has last_error only.
 * thread: any, also several at once
 * GIL: not needed and not taken: Python need not exist
 * ownership: host is borrowed during the call, what it points to until detach; OUT is the caller's
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *         what register_tracer answered
 * since: 1.0 */
typedef kpt_status (*kpt_plugin_entry_fn)(const kpt_host *host, kpt_plugin_info *out);

#ifdef __cplusplus
}
#endif
#endif
