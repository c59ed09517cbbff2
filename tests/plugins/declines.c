/* declines.c: a plugin that accepts no host: its entry declines every one, registers nothing, and has a
 * last_error. It refuses an invalid table or info struct, as every plugin does. */
#include "abi/kpt.h"

static kpt_status last_error(kpt_handle self, char *buf, uint64_t size, uint64_t *needed)
{
    const char *text = self ? "there is no such object" : "this plugin declines every host";
    uint64_t length = strlen(text);
    if (!buf && size > 0) return KPT_E_INVALID;
    if (needed) *needed = length;
    if (size == 0) return KPT_OK;
    if (length >= size) length = size - 1;
    memcpy(buf, text, length);
    buf[length] = 0;
    return KPT_OK;
}

__attribute__((visibility("default"))) kpt_status kpt_plugin_entry_v1(const kpt_host *host,
                                                                      kpt_plugin_info *out);

kpt_status kpt_plugin_entry_v1(const kpt_host *host, kpt_plugin_info *out)
{
    kpt_plugin_info info;
    if (!out) return KPT_E_INVALID;
    if (out->struct_size < KPT_PLUGIN_INFO_V1_SIZE) return KPT_E_SIZE;
    KPT_INIT(&info);
    info.last_error = last_error;
    if (info.struct_size > out->struct_size) info.struct_size = out->struct_size;
    memcpy(out, &info, info.struct_size);
    if (!host) return KPT_E_INVALID;
    return host->struct_size < KPT_HOST_V1_SIZE ? KPT_E_SIZE : KPT_DECLINED;
}
