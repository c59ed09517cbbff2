#include "writers/io/output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/file_descriptor.h"
#include "writers/io/output_symlinks.h"

enum { MAX_LINKS = 40 }; /* as in the kernel */

static int is_on_procfs(const char *folder)
{
    struct statfs info;
    return statfs(folder, &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

/* Splits PATH into its folder, with links resolved, and its last component. Returns 0 or an errno. */
static int split(const char *path, char *folder, const char **base)
{
    char before[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    *base = path + length;
    if (!*path) return ENOENT;
    if (!**base || strcmp(*base, ".") == 0 || strcmp(*base, "..") == 0) return EISDIR;
    if (length >= sizeof before) return ENAMETOOLONG;
    memcpy(before, path, length);
    before[length] = 0;
    return kpti_out_links_resolve(length ? before : ".", folder);
}

static int join(char *out, const char *folder, const char *base)
{
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    int length = snprintf(out, PATH_MAX, "%s%s%s", folder, slash, base);
    return length < PATH_MAX ? 0 : ENAMETOOLONG;
}

/* Handles a link in /proc, which refers to an open file and cannot be followed by name. Our own descriptors are
 * used directly, so that text printed earlier stays before our output. */
static void note_procfs(const char *folder, const char *base, kpti_out_path *out)
{
    char own[64];
    char *end;
    long number = strtol(base, &end, 10);
    (void)snprintf(own, sizeof own, "/proc/%ld/fd", (long)getpid());
    out->kind = KPTI_OUT_INTO;
    out->open_flags &= ~O_NOFOLLOW;
    if (strcmp(folder, own) != 0 || *end || number < 0 || number > INT_MAX) return;
    out->kind = KPTI_OUT_DESCRIPTOR;
    out->descriptor = (int)number;
}

/* Stores the target of the link at out->path in NEXT, as a path. */
static int follow(const char *folder, const kpti_out_path *out, char *next)
{
    char target[PATH_MAX];
    ssize_t length = readlink(out->path, target, sizeof target - 1);
    if (length < 0) return errno;
    target[length] = 0;
    if (target[0] != '/') return join(next, folder, target);
    memcpy(next, target, (size_t)length + 1);
    return 0;
}

/* One step: fills OUT for PATH. NEXT is the path to continue with, or empty. */
static int step(const char *path, kpti_out_path *out, char *next)
{
    char folder[PATH_MAX];
    const char *base;
    struct stat info;
    int error = split(path, folder, &base);
    next[0] = 0;
    if (!error) error = join(out->path, folder, base);
    if (error) return error;
    if (is_on_procfs(folder)) {
        note_procfs(folder, base, out);
        return 0;
    }
    out->kind = KPTI_OUT_REPLACE;
    out->mode = 0;
    out->open_flags |= O_NOFOLLOW;
    if (lstat(out->path, &info) != 0) return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(info.st_mode)) return EISDIR;
    if (!S_ISREG(info.st_mode) && !kpti_out_links_trusts(folder, &info)) return EACCES;
    if (S_ISLNK(info.st_mode)) return follow(folder, out, next);
    if (S_ISREG(info.st_mode))
        out->mode = info.st_mode & 07777;
    else
        out->kind = KPTI_OUT_INTO;
    return 0;
}

int kpti_out_path_find(const char *path, kpti_out_path *out)
{
    char from[PATH_MAX];
    char next[PATH_MAX];
    out->descriptor = -1;
    out->open_flags = O_WRONLY | O_CLOEXEC;
    if (strlen(path) >= sizeof from) return ENAMETOOLONG;
    memcpy(from, path, strlen(path) + 1);
    for (int links = 0; links < MAX_LINKS; links++) {
        int error = step(from, out, next);
        if (error || !next[0]) return error;
        memcpy(from, next, strlen(next) + 1);
    }
    return ELOOP;
}

/* Sets the mode of the file that is replaced. Else the file has the mode of a new file; mkstemp would make it
 * private. */
static int with_rights(const kpti_out_path *place, int fd)
{
    if (fd >= 0 && place->mode) (void)fchmod(fd, place->mode);
    return fd;
}

/* Assigns NAME, which must not exist, to the file. Returns below 0 on failure. */
typedef int (*name_fn)(int fd, kpti_file_id *id, const char *name);

static int make_new(int fd, kpti_file_id *id, const char *name)
{
    (void)fd;
    return kpti_descriptor_open_new(name, O_RDWR | O_CREAT | O_EXCL, 0666, id);
}

/* The program may have closed FD, and then another file has the name. */
static int link_to(int fd, kpti_file_id *id, const char *name)
{
    char own[64];
    (void)snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW) != 0) return -1;
    if (kpti_file_id_is_at(id, name)) return 0;
    (void)unlink(name);
    errno = EBADF;
    return -1;
}

static int find_name(const kpti_out_path *place, name_fn give, int fd, kpti_file_id *id,
                     char name[PATH_MAX])
{
    enum { MAX_NAMES_TRIED = 1000 };
    for (int i = 0; i < MAX_NAMES_TRIED; i++) {
        int made,
            length = snprintf(name, PATH_MAX, "%s.%ld-%d.tmp", place->path, (long)getpid(), i);
        if (length >= PATH_MAX) return -ENAMETOOLONG;
        made = give(fd, id, name);
        if (made >= 0) return made;
        if (errno != EEXIST) return -errno;
    }
    return -EEXIST;
}

int kpti_out_path_beside(const kpti_out_path *place, char name[PATH_MAX], kpti_file_id *id)
{
    return with_rights(place, find_name(place, make_new, -1, id, name));
}

int kpti_out_path_unnamed(const kpti_out_path *place, kpti_file_id *id)
{
    char folder[PATH_MAX];
    const size_t length = (size_t)(strrchr(place->path, '/') - place->path);
    int fd;
    memcpy(folder, place->path, length);
    folder[length] = 0;
    fd = kpti_descriptor_open_new(length ? folder : "/", O_RDWR | O_TMPFILE, 0666, id);
    return fd < 0 ? -errno : with_rights(place, fd);
}

int kpti_out_path_name(const kpti_out_path *place, int fd, kpti_file_id *id, char name[PATH_MAX])
{
    const int error = find_name(place, link_to, fd, id, name);
    return error < 0 ? -error : 0;
}
