/* file_id.h: which file it is, whatever its name or descriptor leads to by now: the program that is traced may
 * close what it did not open, and others may take a name. */
#ifndef KPTI_FILE_ID_H
#define KPTI_FILE_ID_H

#include <sys/stat.h>

typedef struct kpti_file_id {
    dev_t device;
    ino_t inode;
} kpti_file_id;

static inline int kpti_file_id_equals(const kpti_file_id *id, const struct stat *info)
{
    return id->device == info->st_dev && id->inode == info->st_ino;
}

/* Of what FD is open to. 0 or -1, with errno. */
static inline int kpti_file_id_of(int fd, kpti_file_id *out)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return -1;
    *out = (kpti_file_id){info.st_dev, info.st_ino};
    return 0;
}

static inline int kpti_file_id_is(const kpti_file_id *id, int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && kpti_file_id_equals(id, &info);
}

static inline int kpti_file_id_is_at(const kpti_file_id *id, const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && kpti_file_id_equals(id, &info);
}

#endif
