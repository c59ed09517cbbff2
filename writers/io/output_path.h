/* output_path.h: resolves the path of an output, following links. The result is a file that can be replaced as
 * a whole, something that can only be written to (a pipe, a device), or an open descriptor (/dev/stdout,
 * /dev/fd/3). Renaming over one of the latter two would put a file in place of the device. */
#ifndef KPTI_WRITERS_IO_OUTPUT_PATH_H
#define KPTI_WRITERS_IO_OUTPUT_PATH_H

#include <limits.h>

#include "core/base/file_id.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kpti_out_kind {
    KPTI_OUT_REPLACE,   /* a regular file, or no file yet */
    KPTI_OUT_INTO,      /* exists, and is not a regular file */
    KPTI_OUT_DESCRIPTOR /* a descriptor of this process */
} kpti_out_kind;

typedef struct kpti_out_path {
    kpti_out_kind kind;
    int descriptor;      /* with KPTI_OUT_DESCRIPTOR */
    unsigned mode;       /* mode of the file that will be replaced; 0: there is none */
    int open_flags;      /* with KPTI_OUT_INTO: flags for opening the path */
    char path[PATH_MAX]; /* absolute; the last component is not a link */
} kpti_out_path;

/* Resolves PATH. Returns 0, or an errno if nothing can be written there. Any thread. */
int kpti_out_path_find(const char *path, kpti_out_path *out);

/* Creates a file beside PLACE, to be renamed to it. NAME receives its path, and ID holds the file. Returns a
 * descriptor, or a negative errno. Any thread. */
int kpti_out_path_beside(const kpti_out_path *place, char name[PATH_MAX], kpti_file_id *id);

/* The same in two steps. The first creates a file without a name, which disappears with the process. The second
 * names it, and returns 0 or an errno. */
int kpti_out_path_unnamed(const kpti_out_path *place, kpti_file_id *id);
int kpti_out_path_name(const kpti_out_path *place, int fd, kpti_file_id *id, char name[PATH_MAX]);

#ifdef __cplusplus
}
#endif
#endif
