/* sample_entry_point.c: the only symbol that the sample exports. Its name is a macro, so that a variant can have
 * the name of another major version. */
#include "tests/plugins/sample.h"

#ifndef SAMPLE_ENTRY
#define SAMPLE_ENTRY kpt_plugin_entry_v1
#endif

__attribute__((visibility("default"))) kpt_status SAMPLE_ENTRY(const kpt_host *host,
                                                               kpt_plugin_info *out);

kpt_status SAMPLE_ENTRY(const kpt_host *host, kpt_plugin_info *out)
{
    return sample_entry(host, out);
}
