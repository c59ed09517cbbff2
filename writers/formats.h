/* formats.h: all formats of a trace, and the format that a path selects. */
#ifndef KPTI_WRITERS_FORMATS_H
#define KPTI_WRITERS_FORMATS_H

#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_format_choice {
    const kpti_format *format; /* Chrome JSON if the suffix is not known */
    int gzip;                  /* the path ends in ".gz" */
    int known;                 /* the suffix is known */
} kpti_format_choice;

/* Returns the format of a path's suffix, also if ".gz" follows it. */
kpti_format_choice kpti_format_of_path(const char *path);

/* Returns all formats, in the order in which users see them; *COUNT receives their number. */
const kpti_format *const *kpti_formats(size_t *count);

/* Returns whether a file of this format can hold several processes. */
int kpti_format_takes_processes(const kpti_format *format);

#ifdef __cplusplus
}
#endif
#endif
