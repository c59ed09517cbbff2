/* file_descriptor.h: the descriptors that we open in a process which is not ours. The program may have closed descriptor
 * 0, 1 or 2, and prints to it all the same: so ours have numbers from KPTI_FIRST_DESCRIPTOR on. It may close ours, as
 * daemons close all that they did not open, and the number then leads to another file: so each use of one that lives
 * longer than a call checks its identity (file_id.h) before, and none is closed unchecked.
 *
 * Any thread; a fork's child too. */
#ifndef KPTI_CORE_BASE_FILE_DESCRIPTOR_H
#define KPTI_CORE_BASE_FILE_DESCRIPTOR_H

#include "core/base/file_id.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_FIRST_DESCRIPTOR = 3 };

/* Opens PATH, close-on-exec. Returns a descriptor, or -1 with errno: with O_EXCL, PATH is not left behind then. */
int kpti_descriptor_open(const char *path, int flags, unsigned mode);

/* A duplicate of FD, close-on-exec; or -1 with errno. */
int kpti_descriptor_copy(int fd);

/* Moves FD, which the caller has just opened, out of the way of 0, 1 and 2. Returns the descriptor, or -1 with errno:
 * FD is closed then. An FD of -1 stays -1. */
int kpti_descriptor_above(int fd);

/* Opens PATH again, if it still leads to the file ID. Returns a descriptor, or -1. */
int kpti_descriptor_reopen(const kpti_file_id *id, const char *path, int flags);

/* Closes FD if it leads to the file ID, and releases ID. Returns 0, or an errno: EBADF where it leads elsewhere, else what the file
 * system reports only now, such as a full disk. */
int kpti_descriptor_close(kpti_file_id *id, int fd);

#ifdef __cplusplus
}
#endif
#endif
