#include "writers/formats.h"

#include <string.h>

#include "writers/chrome/chrome_json.h"
#include "writers/flame/collapsed.h"
#include "writers/flame/speedscope.h"
#include "writers/format/format.h"
#include "writers/perfetto/perfetto.h"
#include "writers/report/report.h"

/* A suffix that ends with another suffix is before it. */
static const kpti_format *const formats[] = {&kpti_format_speedscope, &kpti_format_chrome,
                                             &kpti_format_perfetto, &kpti_format_collapsed,
                                             &kpti_format_report};
enum { FORMATS = sizeof formats / sizeof formats[0] };

const kpti_format *const *kpti_formats(size_t *count)
{
    *count = FORMATS;
    return formats;
}

static int ends_with(const char *text, size_t size, const char *end)
{
    size_t end_size = strlen(end);
    return size >= end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

kpti_format_choice kpti_format_of_path(const char *path)
{
    size_t size = strlen(path);
    kpti_format_choice choice = {&kpti_format_chrome, ends_with(path, size, ".gz"), 0};
    if (choice.gzip) size -= sizeof ".gz" - 1;
    for (int i = 0; i < FORMATS && !choice.known; i++) {
        choice.known = ends_with(path, size, formats[i]->suffix);
        if (choice.known) choice.format = formats[i];
    }
    return choice;
}

int kpti_format_takes_processes(const kpti_format *format)
{
    return format->ops->begin_process != NULL;
}
