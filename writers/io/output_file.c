#include "writers/io/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/file_descriptor.h"

enum { BUFFER_BYTES = KPTI_OUT_PIECE_BYTES + KPTI_OUT_BUFFER_BYTES };

/* Called after EINTR. Returns whether to stop with EINTR. With a second thread it returns 0, since the callback must
 * not run on the writer's thread. */
static int is_interrupted(const kpti_out_file *out)
{
    return out->interrupted && !out->async && out->interrupted(out->interrupted_ctx);
}

static int open_beside(kpti_out_file *out)
{
    if (out->wants_no_name) out->fd = kpti_out_path_unnamed(&out->place, &out->id);
    out->is_unnamed = out->wants_no_name && out->fd >= 0;
    if (!out->is_unnamed) out->fd = kpti_out_path_beside(&out->place, out->temporary, &out->id);
    return out->fd < 0 ? -out->fd : 0;
}

/* open() of a named pipe waits for its reader. */
static int open_into(kpti_out_file *out)
{
    do {
        if (out->place.kind == KPTI_OUT_DESCRIPTOR)
            out->fd = kpti_descriptor_copy(out->place.descriptor);
        else
            out->fd = kpti_descriptor_open(out->place.path, out->place.open_flags);
    } while (out->fd < 0 && errno == EINTR && !is_interrupted(out));
    return out->fd < 0 || kpti_file_id_hold(out->fd, &out->id) != 0 ? errno : 0;
}

static void fail(kpti_out_file *out, int error)
{
    __atomic_store_n(&out->error, error, __ATOMIC_RELAXED);
}

void kpti_out_fail(kpti_out_file *out, int error)
{
    if (!kpti_out_error(out)) fail(out, error);
}

/* Returns whether the descriptor is still that of the file. If the program has closed it, the file is opened
 * again if it has a name. */
static int has_descriptor(kpti_out_file *out)
{
    int fd;
    if (kpti_file_id_is(&out->id, out->fd)) return 1;
    fd = out->temporary[0] ? kpti_descriptor_reopen(&out->id, out->temporary, O_WRONLY) : -1;
    if (fd < 0) return 0;
    out->fd = fd;
    return lseek(fd, (off_t)out->written, SEEK_SET) >= 0;
}

/* The descriptor may be non-blocking. */
static void wait_for_reader(kpti_out_file *out)
{
    struct pollfd wanted = {out->fd, POLLOUT, 0};
    if (poll(&wanted, 1, -1) < 0 && errno == EINTR && is_interrupted(out)) fail(out, EINTR);
}

/* The compressor and the second thread call it too. */
static void write_all(void *file, const char *data, size_t size)
{
    kpti_out_file *out = file;
    while (size && !out->error) {
        ssize_t count;
        if (!has_descriptor(out)) {
            fail(out, EBADF);
            return;
        }
        count = write(out->fd, data, size);
        if (count > 0) {
            data += count;
            size -= (size_t)count;
            out->written += (uint64_t)count;
        } else if (count == 0) {
            fail(out, EIO);
        } else if (errno == EINTR) {
            if (is_interrupted(out)) fail(out, EINTR);
        } else if (errno == EAGAIN) {
            wait_for_reader(out);
        } else {
            fail(out, errno);
        }
    }
}

static void carry(void *file, const char *data, size_t size)
{
    kpti_out_file *out = file;
    if (out->gzip)
        kpti_gzip_put(out->gzip, data, size);
    else
        write_all(out, data, size);
}

static void free_memory(kpti_out_file *out)
{
    if (out->gzip) kpti_gzip_close(out->gzip, 0);
    kpti_heap_give(&out->heap, out->buffer, BUFFER_BYTES);
    out->gzip = NULL;
    out->buffer = NULL;
}

int kpti_out_open(kpti_out_file *out, const char *path)
{
    int error = kpti_out_path_find(path, &out->place);
    out->buffer = NULL;
    out->fd = -1;
    out->error = 0;
    out->used = 0;
    out->written = 0;
    out->is_unnamed = 0;
    out->temporary[0] = 0;
    out->gzip = NULL;
    out->async = NULL;
    if (error) return error;
    if (out->wants_gzip) error = kpti_gzip_open(&out->gzip, write_all, out);
    if (error) return error;
    out->buffer = kpti_heap_take(&out->heap, BUFFER_BYTES);
    if (!out->buffer)
        error = ENOMEM;
    else
        error = out->place.kind == KPTI_OUT_REPLACE ? open_beside(out) : open_into(out);
    kpti_assert(error || out->fd >= KPTI_FIRST_DESCRIPTOR);
    if (error) free_memory(out);
    return error;
}

/* A wait for a slow reader must notice signals. So only files have a second thread, and not before their first piece
 * is full. */
void kpti_out_send(kpti_out_file *out)
{
    char *full = out->buffer;
    size_t rest = out->used % KPTI_OUT_PIECE_BYTES;
    size_t whole = out->used - rest;
    kpti_assert(out->used <= BUFFER_BYTES);
    if (!whole) return;
    if (!out->async && out->place.kind == KPTI_OUT_REPLACE)
        out->async = kpti_async_writer_start(&out->heap, BUFFER_BYTES, carry, out);
    if (out->async)
        out->buffer = kpti_async_writer_swap(out->async, full, whole);
    else
        carry(out, full, whole);
    /* The second thread only reads FULL, and returns its buffers in turn. */
    memmove(out->buffer, full + whole, rest);
    out->used = rest;
}

void kpti_out_put(kpti_out_file *out, const void *data, size_t size)
{
    const char *at = data;
    while (size) {
        size_t step = size < KPTI_OUT_BUFFER_BYTES ? size : KPTI_OUT_BUFFER_BYTES;
        memcpy(kpti_out_reserve(out, step), at, step);
        out->used += step;
        at += step;
        size -= step;
    }
}

size_t kpti_out_pass(kpti_out_file *out, const char *data, size_t size)
{
    if (out->gzip || out->used || out->async)
        kpti_out_put(out, data, size);
    else
        write_all(out, data, size -= size % KPTI_OUT_SMALL_PIECE_BYTES);
    return size;
}

/* Writes all remaining bytes, and ends the compressor's stream. */
static void finish(kpti_out_file *out)
{
    if (out->used) carry(out, out->buffer, out->used);
    if (out->gzip) kpti_gzip_close(out->gzip, 1);
    out->gzip = NULL;
}

int kpti_out_close(kpti_out_file *out, int keep)
{
    int closed;
    kpti_assert(out->buffer); /* open, and not closed yet */
    if (out->async) kpti_async_writer_end(out->async);
    out->async = NULL;
    if (keep) finish(out);
    if (keep && !out->error && !has_descriptor(out)) out->error = EBADF;
    if (keep && out->is_unnamed && !out->error)
        out->error = kpti_out_path_name(&out->place, out->fd, &out->id, out->temporary);
    closed = kpti_descriptor_close(&out->id, out->fd);
    if (keep && !out->error) out->error = closed;
    if (out->temporary[0]) {
        if (keep && !out->error && rename(out->temporary, out->place.path) != 0) out->error = errno;
        if (!keep || out->error) (void)unlink(out->temporary);
    }
    free_memory(out);
    out->fd = -1;
    return out->error;
}
