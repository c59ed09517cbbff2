/* output_symlinks.h: symbolic links on the way to an output. In a folder where everybody may make files and only the owner
 * may remove them (/tmp), another user's link or pipe could lead a trace elsewhere. The kernel refuses to follow such a
 * link where fs.protected_symlinks is set; reading links ourselves goes past that, so the same rule is applied here,
 * always. Any thread. */
#ifndef KPTI_WRITERS_IO_OUTPUT_SYMLINKS_H
#define KPTI_WRITERS_IO_OUTPUT_SYMLINKS_H

#include <limits.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether ENTRY, the lstat of a link or pipe in FOLDER, may be used: FOLDER is not sticky and writable by all, or ENTRY
 * is owned by this process's user or by FOLDER's owner. */
int kpti_out_links_trusts(const char *folder, const struct stat *entry);

/* Resolves the folder PATH to an absolute path without links, as realpath does. Returns 0 or an errno: EACCES where a
 * link is not to be followed. */
int kpti_out_links_resolve(const char *path, char out[PATH_MAX]);

#ifdef __cplusplus
}
#endif
#endif
