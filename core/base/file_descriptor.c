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

int kpti_descriptor_open(const char *path, int flags, unsigned mode)
{
    const int opened = open(path, flags | O_CLOEXEC, mode);
    const int fd = kpti_descriptor_above(opened);
    if (fd < 0 && opened >= 0 && flags & O_EXCL) {
        const int error = errno;
        (void)unlink(path);
        errno = error;
    }
    kpti_assert(fd < 0 || fd >= KPTI_FIRST_DESCRIPTOR);
    return fd;
}

/* Checks PATH also before opening it, because opening a pipe would wait for its reader. */
int kpti_descriptor_reopen(const kpti_file_id *id, const char *path, int flags)
{
    int fd;
    if (!kpti_file_id_is_at(id, path)) return -1;
    fd = kpti_descriptor_open(path, flags, 0);
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
