/* other_major.c: a plugin of an unknown major version of the contract. */
#include "abi/kpt.h"

__attribute__((visibility("default"))) kpt_status kpt_plugin_entry_v2(const void *host, void *out);

kpt_status kpt_plugin_entry_v2(const void *host, void *out)
{
    (void)host;
    (void)out;
    return KPT_OK;
}
