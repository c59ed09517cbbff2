/* file_id.h: the identity of a file, independent of its name and descriptor. The traced program may
 * close descriptors that it did not open, and other files may take a name. An inode number
 * identifies a file only while the inode exists, because file systems reuse the number at once. */
#ifndef KPTI_CORE_BASE_FILE_ID_H
#define KPTI_CORE_BASE_FILE_ID_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef struct kpti_file_id {
    dev_t device;
    ino_t inode;
    /* A mapped page, which keeps the inode in existence until release. NULL if something else keeps
     * it. */
    void *held;
} kpti_file_id;

static inline int kpti_file_id_equals(const kpti_file_id *id, const struct stat *info)
{
    return id->device == info->st_dev && id->inode == info->st_ino;
}

/* Fills OUT with the identity of the file that FD is open on. Returns 0, or -1 with errno set. */
static inline int kpti_file_id_of(int fd, kpti_file_id *out)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return -1;
    *out = (kpti_file_id){info.st_dev, info.st_ino, NULL};
    return 0;
}

/* As kpti_file_id_of, but also keeps the inode of a regular file that FD can read in existence
 * until release. */
static inline int kpti_file_id_hold(int fd, kpti_file_id *out)
{
    void *page;
    if (kpti_file_id_of(fd, out) != 0) return -1;
    page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, fd, 0);
    if (page != MAP_FAILED) out->held = page;
    return 0;
}

static inline void kpti_file_id_release(kpti_file_id *id)
{
    if (id->held) (void)munmap(id->held, 1);
    id->held = NULL;
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
