#include "execution_trace/output/resource_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "writers/io/output_file.h"

/* Returns the length of NAME without SUFFIX, if it ends in SUFFIX. */
static size_t without(const char *name, size_t size, const char *suffix)
{
    const size_t length = strlen(suffix);
    return size > length && memcmp(name + size - length, suffix, length) == 0 ? size - length
                                                                              : size;
}

void kpti_et_resources_of(kpti_et_resources *r, const char *path)
{
    const size_t size = without(path, without(path, strlen(path), ".gz"), ".json");
    r->error = 0;
    if (snprintf(r->folder, sizeof r->folder, "%.*s_resources", (int)size, path) >=
        (int)sizeof r->folder)
        r->error = ENAMETOOLONG;
}

void kpti_et_resources_put(kpti_et_resources *r, uint64_t node, uint32_t tensor, const void *data,
                           size_t size)
{
    char path[PATH_MAX];
    kpti_out_file out = {.fd = -1};
    if (!r->error && mkdir(r->folder, 0777) != 0 && errno != EEXIST) r->error = errno;
    if (!r->error && snprintf(path, sizeof path, "%s/nid_%" PRIu64 "_tid_%" PRIu32 ".dat",
                              r->folder, node, tensor) >= (int)sizeof path)
        r->error = ENAMETOOLONG;
    if (!r->error) r->error = kpti_out_open(&out, path);
    if (r->error) return;
    kpti_out_put(&out, data, size);
    r->error = kpti_out_close(&out, 1);
}
