#include "writers/memory/memory_formats.h"

#include <errno.h>

#include "writers/memory/memory_chrome.h"
#include "writers/memory/memory_perfetto.h"
#include "writers/memory/memory_tables.h"
#include "writers/memory/memory_viz.h"

static const struct format {
    const char *suffix;
    kpti_memory_write_fn write;
} formats[] = {{".pickle", kpti_memory_viz_write},
               {".tables.json", kpti_memory_tables_write},
               {".json", kpti_memory_chrome_write},
               {".pftrace", kpti_memory_perfetto_write}};
enum { FORMATS = sizeof formats / sizeof *formats };

kpti_memory_write_fn kpti_memory_writer_of(const char *path)
{
    const size_t length = strlen(path);
    for (int i = 0; i < FORMATS; i++) {
        const size_t size = strlen(formats[i].suffix);
        if (length > size && strcmp(path + length - size, formats[i].suffix) == 0)
            return formats[i].write;
    }
    return NULL;
}

int kpti_memory_write_file(kpti_memory_history *history, kpti_memory_write_fn write,
                           const char *path)
{
    kpti_out_file out = {.fd = -1};
    int error = kpti_out_open(&out, path);
    int whole;
    if (error) return error;
    whole = write(history, &out);
    error = kpti_out_close(&out, whole);
    return whole ? error : ENOMEM;
}
