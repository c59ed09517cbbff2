/* output_symlinks.h: symbolic links in the path of an output. In a folder where every user may create files and
 * only their owner may remove them (/tmp), another user's link or pipe could redirect a trace. The kernel does
 * not follow such a link if fs.protected_symlinks is set. We read links ourselves, which bypasses that check,
 * so the same rule is applied here, always. Any thread. */
#ifndef KPTI_WRITERS_IO_OUTPUT_SYMLINKS_H
#define KPTI_WRITERS_IO_OUTPUT_SYMLINKS_H

#include <limits.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether ENTRY, the lstat of a link or pipe in FOLDER, may be used: FOLDER is not both sticky and
 * writable by all, or ENTRY is owned by this process's user or by FOLDER's owner. */
int kpti_out_links_trusts(const char *folder, const struct stat *entry);

/* Resolves the folder PATH to an absolute path without links, as realpath does. Returns 0 or an errno; EACCES
 * if a link must not be followed. */
int kpti_out_links_resolve(const char *path, char out[PATH_MAX]);

#ifdef __cplusplus
}
#endif
#endif
