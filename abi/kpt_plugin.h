/* kpt_plugin.h: the only symbol that a plugin exports, and the struct in which it describes itself
 * to the host. */
#ifndef KPT_PLUGIN_H
#define KPT_PLUGIN_H

#include "kpt_base.h"
#include "kpt_host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_PLUGIN_ENTRY_NAME "kpt_plugin_entry_v1"

typedef struct kpt_plugin_info {
    uint32_t struct_size; /* the caller's size; on return, the number of bytes filled */
    uint32_t abi_minor;   /* the KPT_ABI_MINOR that the plugin was built with */
    kpt_handle self;      /* the binding of this host to the plugin; 0 if the entry failed */
    kpt_str name;         /* name and version are static strings */
    kpt_str version;

    /* Returns the reason why the last call of a factory failed. With self 0 it returns the reason
     * why the last call of the entry in this process failed.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* Returns the plugin's extensions: KPT_EXT_REGISTRY (kpt_registry.h), and since 1.1
     * KPT_EXT_LOADER (kpt_loader.h), KPT_EXT_TRACEBACK (kpt_traceback.h) and KPT_EXT_GPU
     * (kpt_gpu.h).
     * thread: any
     * GIL: not needed
     * ownership: as the header of the extension defines
     * errors: as kpt_get_extension_fn
     * since: 1.0 */
    kpt_get_extension_fn get_extension;

    /* Ends the binding and frees all memory that was allocated with the host's allocator. The
     * library stays loaded.
     * thread: any
     * GIL: not needed
     * ownership: self and every make_ctx of this entry become invalid: calls with them return
     *     KPT_E_HANDLE
     * errors: KPT_E_STATE while an object made through this host exists, KPT_E_HANDLE
     * since: 1.0 */
    kpt_status (*detach)(kpt_handle self);
} kpt_plugin_info;
#define KPT_PLUGIN_INFO_V1_SIZE KPT_FIELD_END(kpt_plugin_info, detach)

/* Checks the host's table, registers the factories with the host, and fills OUT. The same host or
 * another host may call the entry again; each call makes a separate binding. The entry prints
 * nothing unless KPYTRACE_VERBOSE is set. On an error the plugin registers nothing and keeps no
 * memory, and OUT has only last_error.
 * thread: any, also several at once
 * GIL: not needed and not acquired: Python need not be loaded
 * ownership: host is borrowed during the call, the objects that it points to until detach; OUT
 *     belongs to the caller
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *     the status that register_tracer returned
 * since: 1.0 */
typedef kpt_status (*kpt_plugin_entry_fn)(const kpt_host *host, kpt_plugin_info *out);

#ifdef __cplusplus
}
#endif
#endif
