#include "writers/io/output_symlinks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINKS = 40 }; /* as in the kernel */

int kpti_out_links_trusts(const char *folder, const struct stat *entry)
{
    const mode_t shared = S_ISVTX | S_IWOTH;
    struct stat info;
    if (stat(folder, &info) != 0) return 0;
    return (info.st_mode & shared) != shared || entry->st_uid == geteuid() ||
           entry->st_uid == info.st_uid;
}

/* Puts the target of the link at PATH, which is in the folder OUT, before REST. OUT becomes the folder to
 * continue from. Returns 0 or an errno. */
static int follow(const char *path, char *out, char *rest)
{
    char target[PATH_MAX];
    char whole[PATH_MAX];
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) return errno;
    target[length] = 0;
    if (snprintf(whole, sizeof whole, "%s/%s", target, rest) >= PATH_MAX) return ENAMETOOLONG;
    memcpy(rest, whole, strlen(whole) + 1);
    if (target[0] == '/') out[0] = 0;
    return 0;
}

/* Moves from the folder OUT to its entry NAME. Returns 0 or an errno. */
static int enter(const char *name, char *out, char *rest, int *links)
{
    char path[PATH_MAX];
    struct stat info;
    if (snprintf(path, sizeof path, "%s/%s", out, name) >= PATH_MAX) return ENAMETOOLONG;
    if (lstat(path, &info) != 0) return errno;
    if (S_ISLNK(info.st_mode)) {
        if (++*links > MAX_LINKS) return ELOOP;
        return kpti_out_links_trusts(*out ? out : "/", &info) ? follow(path, out, rest) : EACCES;
    }
    if (!S_ISDIR(info.st_mode)) return ENOTDIR;
    memcpy(out, path, strlen(path) + 1);
    return 0;
}

/* Removes the first component of REST and stores it in NAME. */
static void take_name(char *rest, char *name)
{
    const size_t slashes = strspn(rest, "/");
    const size_t length = strcspn(rest + slashes, "/");
    memcpy(name, rest + slashes, length);
    name[length] = 0;
    memmove(rest, rest + slashes + length, strlen(rest + slashes + length) + 1);
}

/* Until the end, OUT is empty for the root. */
int kpti_out_links_resolve(const char *path, char out[PATH_MAX])
{
    char rest[PATH_MAX];
    char name[PATH_MAX];
    int links = 0;
    int error = 0;
    if (strlen(path) >= sizeof rest) return ENAMETOOLONG;
    memcpy(rest, path, strlen(path) + 1);
    out[0] = 0;
    if (path[0] != '/' && !getcwd(out, PATH_MAX)) return errno;
    if (strcmp(out, "/") == 0) out[0] = 0;
    while (!error) {
        take_name(rest, name);
        if (!name[0]) break;
        if (strcmp(name, "..") == 0)
            *(strrchr(out, '/') ? strrchr(out, '/') : out) = 0;
        else if (strcmp(name, ".") != 0)
            error = enter(name, out, rest, &links);
    }
    if (!error && !out[0]) memcpy(out, "/", 2);
    return error;
}
