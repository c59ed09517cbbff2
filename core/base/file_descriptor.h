/* file_descriptor.h: the descriptors that kpytrace opens in the traced program's process. The
 * program may have closed descriptor 0, 1 or 2 and still print to it, so our descriptors have
 * numbers from KPTI_FIRST_DESCRIPTOR on. The program may also close our descriptors, as daemons
 * close every descriptor that they did not open, and the number may then refer to another file.
 * Therefore each use of a descriptor that lives longer than one call first checks its identity
 * (file_id.h), and no descriptor is closed without that check.
 *
 * Any thread; also in the child of a fork. */
#ifndef KPTI_CORE_BASE_FILE_DESCRIPTOR_H
#define KPTI_CORE_BASE_FILE_DESCRIPTOR_H

#include "core/base/file_id.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_FIRST_DESCRIPTOR = 3 };

/* Opens the existing file PATH, close-on-exec. Returns a descriptor, or -1 with errno set. */
int kpti_descriptor_open(const char *path, int flags);

/* Opens a new file: PATH with O_EXCL or O_TMPFILE in FLAGS, or a file in memory if PATH is NULL.
 * Holds the file's ID. Opens it again if another thread has closed the descriptor meanwhile, even if
 * the number is that of another file by then. Returns a descriptor, or -1 with errno set; then
 * nothing is left at PATH. */
int kpti_descriptor_open_new(const char *path, int flags, unsigned mode, kpti_file_id *id);

/* Duplicates FD, close-on-exec. Returns the duplicate, or -1 with errno set. */
int kpti_descriptor_copy(int fd);

/* Moves FD, which the caller has just opened, to a number above 2. Returns the descriptor, or -1
 * with errno set after closing FD. Returns -1 for an FD of -1. */
int kpti_descriptor_above(int fd);

/* Opens PATH again if it still refers to the file ID. Returns a descriptor, or -1. */
int kpti_descriptor_reopen(const kpti_file_id *id, const char *path, int flags);

/* Closes FD if it refers to the file ID, and releases ID. Returns 0 or an errno: EBADF if FD refers
 * to another file, otherwise an error that the file system reports only now, such as a full
 * disk. */
int kpti_descriptor_close(kpti_file_id *id, int fd);

#ifdef __cplusplus
}
#endif
#endif
