#include "writers/io/spill_log.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/file_descriptor.h"
#include "core/base/growable_array.h"

enum { READ_BYTES = 64 << 10 };

static int open_in(kpti_spill_log *l, const kpti_out_path *place)
{
    char name[PATH_MAX];
    l->fd = kpti_out_path_unnamed(place, &l->id);
    if (l->fd >= 0) return 0;
    l->fd =
        kpti_out_path_beside(place, name, &l->id); /* the file system has no files without a name */
    if (l->fd < 0) return -l->fd;
    (void)unlink(name);
    return 0;
}

/* Opens the file where the output is, or in /tmp. */
static int open_file(kpti_spill_log *l)
{
    kpti_out_path place;
    int error = EROFS;
    if (l->output->kind == KPTI_OUT_REPLACE) error = open_in(l, l->output);
    if (error) {
        error = kpti_out_path_find(P_tmpdir "/kpytrace", &place);
        if (!error) error = open_in(l, &place);
    }
    l->has_file = !error;
    return error;
}

static int write_all(const kpti_spill_log *l, const char *bytes, uint64_t size, uint64_t at)
{
    while (size) {
        const ssize_t wrote = pwrite(l->fd, bytes, (size_t)size, (off_t)at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return wrote ? errno : EIO;
        bytes += wrote;
        size -= (uint64_t)wrote;
        at += (uint64_t)wrote;
    }
    return 0;
}

/* Writes what is in memory to the file. */
static int spill(kpti_spill_log *l)
{
    int error = l->has_file ? 0 : open_file(l);
    if (!error && !kpti_file_id_is(&l->id, l->fd)) error = EBADF; /* the program has closed it */
    if (!error) error = write_all(l, l->memory, l->used, l->written);
    if (error) return error;
    l->written += l->used;
    l->used = 0;
    return 0;
}

int kpti_spill_log_add(kpti_spill_log *l, const void *bytes, size_t size, uint64_t *place)
{
    kpti_assert(size <= KPTI_SPILL_MEMORY_BYTES);
    if (l->used + size > KPTI_SPILL_MEMORY_BYTES) {
        const int error = spill(l);
        if (error) return error;
    }
    if (!kpti_array_reserve(&l->heap, &l->memory, &l->capacity, l->used + size, 1)) return ENOMEM;
    if (size) memcpy(l->memory + l->used, bytes, size);
    *place = l->written + l->used;
    l->used += size;
    return 0;
}

/* Reads the part of the file that begins at PLACE. */
static int read_from(kpti_spill_log *l, uint64_t place)
{
    ssize_t count;
    if (!l->read) l->read = kpti_heap_take(&l->heap, READ_BYTES);
    if (!l->read) return ENOMEM;
    if (!kpti_file_id_is(&l->id, l->fd)) return EBADF;
    do
        count = pread(l->fd, l->read, READ_BYTES, (off_t)place);
    while (count < 0 && errno == EINTR);
    if (count <= 0) return count ? errno : EIO;
    l->read_at = place;
    l->read_bytes = (uint64_t)count;
    return 0;
}

/* Copies what is in one part, and returns its size in *COPIED. */
static int read_some(kpti_spill_log *l, uint64_t place, char *out, size_t size, size_t *copied)
{
    const char *from = l->memory;
    uint64_t at = l->written;
    uint64_t end = l->written + l->used;
    int error = 0;
    if (place < l->written) {
        if (!l->read_bytes || place < l->read_at || place >= l->read_at + l->read_bytes)
            error = read_from(l, place);
        if (error) return error;
        from = l->read;
        at = l->read_at;
        end = l->read_at + l->read_bytes < l->written ? l->read_at + l->read_bytes : l->written;
    }
    kpti_assert(place >= at && place < end);
    *copied = end - place < size ? (size_t)(end - place) : size;
    memcpy(out, from + (place - at), *copied);
    return 0;
}

int kpti_spill_log_read(kpti_spill_log *l, uint64_t place, void *out, size_t size)
{
    char *at = out;
    while (size) {
        size_t copied;
        const int error = read_some(l, place, at, size, &copied);
        if (error) return error;
        at += copied;
        place += copied;
        size -= copied;
    }
    return 0;
}

void kpti_spill_log_free(kpti_spill_log *l)
{
    if (l->has_file) (void)kpti_descriptor_close(&l->id, l->fd);
    l->has_file = 0;
    kpti_heap_give(&l->heap, l->memory, l->capacity);
    kpti_heap_give(&l->heap, l->read, READ_BYTES);
    l->memory = l->read = NULL;
    l->capacity = l->used = l->written = l->read_bytes = 0;
}
