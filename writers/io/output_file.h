/* output_file.h: an output that appears whole or not at all. A regular file is written beside its
 * place and renamed there at the end; a pipe, a device or a descriptor is written into as it is.
 * A file that is not small goes to the system, and through gzip, on a second thread.
 *
 * The first error is kept, later writes do nothing, and close tells it: so who writes need not look
 * at each call. One thread at a time; no GIL. */
#ifndef KPTI_WRITERS_IO_OUTPUT_FILE_H
#define KPTI_WRITERS_IO_OUTPUT_FILE_H

#include "core/base/allocator.h"
#include "core/base/file_id.h"
#include "writers/io/async_writer.h"
#include "writers/io/gzip.h"
#include "writers/io/output_path.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most room that can be asked for at once. */
enum { KPTI_OUT_BUFFER_BYTES = 512 * 1024 };
/* What is gathered goes to the system in pieces of this size, all but the last. File systems take them
 * faster where they are aligned (seen with ext4). With pieces of 256 kB a call of Chrome JSON took 12 ns
 * more; these buffers are still in the cache of the other processor when they are filled again, which is
 * probably why. Invariant: room is made where there are as many bytes or more. */
enum { KPTI_OUT_PIECE_BYTES = 1024 * 1024 };

/* Asked when a signal interrupts a wait for a slow reader: not 0 gives up, with EINTR. */
typedef int (*kpti_interrupted_fn)(void *ctx);

typedef struct kpti_out_file {
    kpti_heap heap;
    kpti_interrupted_fn interrupted; /* NULL: waits go on */
    void *interrupted_ctx;
    int wants_gzip;
    int wants_no_name; /* until close: who is killed leaves no half of a file behind, where the system can */
    kpti_gzip *gzip;       /* NULL: bytes go out as they are */
    kpti_courier *courier; /* NULL: none, or none yet */
    int fd;
    kpti_file_id id;  /* of what fd was opened for */
    int error;        /* an errno; 0: none so far. While there is a courier, it is the courier's */
    uint64_t written; /* bytes that the system took */
    char *buffer;
    size_t used;
    kpti_out_path place;
    int is_unnamed;
    char temporary[PATH_MAX]; /* empty: written into its place, or unnamed */
} kpti_out_file;

/* Opens PATH. Returns 0 or an errno; OUT needs a close only after 0. Before, OUT is zeroed and
 * heap, interrupted and what it wants may be set. */
int kpti_out_open(kpti_out_file *out, const char *path);

/* Ends it. With KEEP the file is put in its place, without it, or after an error, nothing is left
 * behind. Returns 0 or the first errno of all. */
int kpti_out_close(kpti_out_file *out, int keep);

/* Sends the whole pieces that there are. */
void kpti_out_send(kpti_out_file *out);

/* Takes what it wants of SIZE bytes that the caller has gathered in memory of its own, and returns how many. What
 * is not to be compressed goes to the system as it is, on this thread, while it is still in the processor's
 * cache: less of its time than a copy and a courier, where little is spent on what is written. The rest, less
 * than a small piece, is for the next time, or for put. */
enum { KPTI_OUT_SMALL_PIECE_BYTES = 64 * 1024 };
size_t kpti_out_pass(kpti_out_file *out, const char *data, size_t size);

/* The first errno so far. */
static inline int kpti_out_error(const kpti_out_file *out)
{
    return __atomic_load_n(&out->error, __ATOMIC_RELAXED);
}

/* Writes any number of bytes. */
void kpti_out_put(kpti_out_file *out, const void *data, size_t size);

/* Room for SIZE bytes, at most KPTI_OUT_BUFFER_BYTES; how far it was filled goes to wrote. */
static inline char *kpti_out_room(kpti_out_file *out, size_t size)
{
    if (out->used >= KPTI_OUT_PIECE_BYTES) kpti_out_send(out);
    (void)size; /* there is as much and more behind any part of a piece */
    return out->buffer + out->used;
}

static inline void kpti_out_wrote(kpti_out_file *out, const char *end)
{
    out->used = (size_t)(end - out->buffer);
}

#ifdef __cplusplus
}
#endif
#endif
