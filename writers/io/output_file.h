/* output_file.h: an output that appears completely or not at all. A regular file is written beside its path and
 * renamed at the end. A pipe, a device or a descriptor is written to directly. A file that is not small is
 * written, and compressed, on a second thread.
 *
 * The first error is stored, later writes do nothing, and close returns the error. So callers need not check
 * each call. One thread at a time; no GIL. */
#ifndef KPTI_WRITERS_IO_OUTPUT_FILE_H
#define KPTI_WRITERS_IO_OUTPUT_FILE_H

#include "core/base/allocator.h"
#include "core/base/assert.h"
#include "core/base/file_id.h"
#include "writers/io/async_writer.h"
#include "writers/io/gzip.h"
#include "writers/io/output_path.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes that kpti_out_reserve can provide at once. */
enum { KPTI_OUT_BUFFER_BYTES = 512 * 1024 };
/* Collected bytes are written in pieces of this size, except the last. File systems are faster with aligned
 * pieces (seen with ext4). With pieces of 256 kB a call of Chrome JSON took 12 ns more, probably because these
 * buffers are still in the cache of the other processor when they are filled again. Invariant: kpti_out_reserve
 * sends when there are this many bytes or more. */
enum { KPTI_OUT_PIECE_BYTES = 1024 * 1024 };

/* Called when a signal interrupts a wait for a slow reader. If it returns not 0, the write fails with EINTR. */
typedef int (*kpti_interrupted_fn)(void *ctx);

typedef struct kpti_out_file {
    kpti_heap heap;
    kpti_interrupted_fn interrupted; /* NULL: waits continue after signals */
    void *interrupted_ctx;
    int wants_gzip;
    /* until close, if the system supports it: a killed process then leaves no partial file */
    int wants_no_name;
    kpti_gzip *gzip;          /* NULL: not compressed */
    kpti_async_writer *async; /* NULL: no second thread, or not yet */
    int fd;
    kpti_file_id id; /* of the file that fd was opened for */
    /* an errno, or 0; the second thread writes it while there is one. Not _Atomic, which C++ does not have */
    int error;
    uint64_t written; /* bytes that the system accepted */
    char *buffer;
    size_t used;
    kpti_out_path place;
    int is_unnamed;
    char temporary[PATH_MAX]; /* empty: written directly to its path, or unnamed */
} kpti_out_file;

/* Opens PATH. OUT must be zeroed, except for heap, interrupted, its ctx and the wants_ fields. Returns 0 or an
 * errno. Only after 0 the caller must call kpti_out_close. */
int kpti_out_open(kpti_out_file *out, const char *path);

/* Closes the output. With KEEP the file is renamed to its path. Without KEEP, or after an error, nothing is
 * left. Returns 0 or the first errno. */
int kpti_out_close(kpti_out_file *out, int keep);

/* Writes the whole pieces in the buffer. */
void kpti_out_send(kpti_out_file *out);

/* Writes some of SIZE bytes from the caller's memory, and returns how many. If they are not compressed, they
 * are written without a copy, on this thread, while they are still in the processor's cache. That takes less of
 * this thread's time than a copy and a second thread, if little time is spent per byte. The caller passes the rest,
 * less than a small piece, with the next call or to kpti_out_put. */
enum { KPTI_OUT_SMALL_PIECE_BYTES = 64 * 1024 };
size_t kpti_out_pass(kpti_out_file *out, const char *data, size_t size);

/* Makes ERROR, from 1 on, the first error, if there is none. */
void kpti_out_fail(kpti_out_file *out, int error);

/* Returns the first errno so far, or 0. */
static inline int kpti_out_error(const kpti_out_file *out)
{
    return __atomic_load_n(&out->error, __ATOMIC_RELAXED);
}

/* Writes any number of bytes. */
void kpti_out_put(kpti_out_file *out, const void *data, size_t size);

/* Returns space for SIZE bytes, at most KPTI_OUT_BUFFER_BYTES. The caller passes the end of the written bytes
 * to kpti_out_wrote. */
static inline char *kpti_out_reserve(kpti_out_file *out, size_t size)
{
    kpti_assert(size <= KPTI_OUT_BUFFER_BYTES && out->buffer);
    if (out->used >= KPTI_OUT_PIECE_BYTES) kpti_out_send(out);
    kpti_assert(out->used < KPTI_OUT_PIECE_BYTES);
    (void)size; /* the buffer has at least that much space after a partial piece */
    return out->buffer + out->used;
}

static inline void kpti_out_wrote(kpti_out_file *out, const char *end)
{
    kpti_assert(end >= out->buffer + out->used);
    out->used = (size_t)(end - out->buffer);
    kpti_assert(out->used <= KPTI_OUT_PIECE_BYTES + KPTI_OUT_BUFFER_BYTES);
}

#ifdef __cplusplus
}
#endif
#endif
