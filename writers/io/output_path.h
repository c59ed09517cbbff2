/* output_path.h: where the path of an output leads, links followed: to a file that can be replaced as
 * a whole, to something that can only be written into (a pipe, a device), or to a descriptor that
 * is open already (/dev/stdout, /dev/fd/3). Renaming over one of the latter would put a file where
 * the device was. */
#ifndef KPTI_WRITERS_IO_OUTPUT_PATH_H
#define KPTI_WRITERS_IO_OUTPUT_PATH_H

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kpti_out_kind {
    KPTI_OUT_REPLACE,   /* a regular file, or nothing yet */
    KPTI_OUT_INTO,      /* exists, and is no regular file */
    KPTI_OUT_DESCRIPTOR /* one of this process */
} kpti_out_kind;

typedef struct kpti_out_path {
    kpti_out_kind kind;
    int descriptor;      /* with KPTI_OUT_DESCRIPTOR */
    unsigned mode;       /* of the file that would be replaced; 0: there is none */
    int open_flags;      /* with KPTI_OUT_INTO: what to open the path with */
    char path[PATH_MAX]; /* absolute; its last component is no link */
} kpti_out_path;

/* Follows PATH. Returns 0, or the errno that says why nothing can be written there. Any thread. */
int kpti_out_path_find(const char *path, kpti_out_path *out);

/* Makes a file beside PLACE, where one can be replaced, to be renamed to it. NAME gets its path. Returns a
 * descriptor, for reading too (kpti_file_id_hold), or an errno below 0. Any thread. */
int kpti_out_path_beside(const kpti_out_path *place, char name[PATH_MAX]);

/* The same in two steps: a file that has no name, and is gone with the process; and its name, 0 or an errno. */
int kpti_out_path_unnamed(const kpti_out_path *place);
int kpti_out_path_name(const kpti_out_path *place, int fd, char name[PATH_MAX]);

#ifdef __cplusplus
}
#endif
#endif
