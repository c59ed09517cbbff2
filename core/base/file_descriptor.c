#include "core/base/file_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/assert.h"

int kpti_descriptor_copy(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, KPTI_FIRST_DESCRIPTOR);
}

int kpti_descriptor_above(int fd)
{
    int above;
    int error;
    if (fd < 0 || fd >= KPTI_FIRST_DESCRIPTOR) return fd;
    above = kpti_descriptor_copy(fd);
    error = errno;
    (void)close(fd);
    errno = error;
    return above;
}

int kpti_descriptor_open(const char *path, int flags)
{
    const int fd = kpti_descriptor_above(open(path, flags | O_CLOEXEC));
    kpti_assert(fd < 0 || fd >= KPTI_FIRST_DESCRIPTOR);
    return fd;
}

/* Returns whether FD is still the new file. Another file of the program may have its number, and the
 * inode of a file without a name if that was closed before it was held. */
static int is_new_file(int fd, const char *path, int flags, const kpti_file_id *id)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !kpti_file_id_equals(id, &info)) return 0;
    return flags & O_EXCL ? kpti_file_id_is_at(id, path) : !info.st_nlink && !info.st_size;
}

static int hold_new(int fd, const char *path, int flags, kpti_file_id *id)
{
    if (kpti_file_id_hold(fd, id) == 0) {
        if (is_new_file(fd, path, flags, id)) return 0;
        kpti_file_id_release(id);
    }
    errno = EBADF;
    return -1;
}

static int open_or_create(const char *path, int flags, unsigned mode)
{
    return path ? open(path, flags | O_CLOEXEC, mode) : memfd_create("kpytrace", MFD_CLOEXEC);
}

int kpti_descriptor_open_new(const char *path, int flags, unsigned mode, kpti_file_id *id)
{
    /* A program that closes all descriptors does so once. */
    enum { MAX_TRIES = 8 };
    for (int i = 0;; i++) {
        const int opened = open_or_create(path, flags, mode);
        const int fd = kpti_descriptor_above(opened);
        const int is_held = fd >= 0 && hold_new(fd, path, flags, id) == 0;
        const int error = errno;
        kpti_assert(fd < 0 || fd >= KPTI_FIRST_DESCRIPTOR);
        if (is_held) return fd;
        if (opened >= 0 && flags & O_EXCL) (void)unlink(path);
        errno = error;
        if (fd < 0 || i == MAX_TRIES) return -1;
    }
}

/* Checks PATH also before opening it, because opening a pipe would wait for its reader. */
int kpti_descriptor_reopen(const kpti_file_id *id, const char *path, int flags)
{
    int fd;
    if (!kpti_file_id_is_at(id, path)) return -1;
    fd = kpti_descriptor_open(path, flags);
    if (fd < 0 || kpti_file_id_is(id, fd)) return fd;
    (void)close(fd);
    return -1;
}

int kpti_descriptor_close(kpti_file_id *id, int fd)
{
    int error = EBADF;
    if (kpti_file_id_is(id, fd)) error = close(fd) != 0 ? errno : 0;
    kpti_file_id_release(id);
    return error == EINTR ? 0 : error; /* close() has closed it in that case too */
}
