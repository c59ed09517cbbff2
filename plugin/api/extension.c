#include "plugin/api/extension.h"

#include "plugin/api/gpu_api.h"
#include "plugin/api/recording_loader.h"
#include "plugin/api/registry.h"
#include "plugin/api/traceback_api.h"
#include "plugin/objects/host_binding.h"
#include "plugin/objects/struct_size.h"

static const struct extension {
    const char *name;
    const void *table;
    uint32_t size;
    uint32_t v1_size;
} extensions[] = {
    {KPT_EXT_REGISTRY, &kpti_registry_table, sizeof kpti_registry_table, KPT_REGISTRY_V1_SIZE},
    {KPT_EXT_LOADER, &kpti_loader_table, sizeof kpti_loader_table, KPT_LOADER_V1_SIZE},
    {KPT_EXT_TRACEBACK, &kpti_traceback_table, sizeof kpti_traceback_table,
     KPT_TRACEBACK_MAKER_V1_SIZE},
    {KPT_EXT_GPU, &kpti_gpu_table, sizeof kpti_gpu_table, KPT_GPU_MAKER_V1_SIZE},
};
enum { EXTENSIONS = sizeof extensions / sizeof extensions[0] };

static kpt_status fill(kpt_str name, void *out, kpti_error *error)
{
    if (name.size && !name.data)
        return kpti_fail(error, KPT_E_INVALID,
                         "get_extension: name has a size, but its data is NULL");
    for (int i = 0; i < EXTENSIONS; i++) {
        const struct extension *e = &extensions[i];
        kpt_status status;
        if (!kpt_str_is(name, e->name)) continue;
        status = kpti_size_check(out, e->v1_size);
        if (status != KPT_OK)
            return kpti_fail(error, status, "get_extension: out is NULL or too small");
        kpti_size_write(out, e->table, e->size);
        return KPT_OK;
    }
    return kpti_fail(error, KPT_E_UNSUPPORTED, "the plugin has no extension of that name");
}

kpt_status kpti_extension_get(kpt_handle plugin, kpt_str name, void *out)
{
    kpti_error error = {""};
    kpt_status status;
    if (!kpti_handle_pin(plugin, &kpti_host_binding_kind)) return KPT_E_HANDLE;
    status = fill(name, out, &error);
    if (status != KPT_OK) (void)kpti_handle_fail(plugin, status, &error);
    kpti_handle_unpin(plugin);
    return status;
}
