/* kpt_writer.h: writes our own file. Either as a whole, which appears when it is complete like all other
 * files; or as a stream, in its place from the beginning: when a call returns the system has the
 * record, and a crash loses nothing of it.
 *
 * A stream that the system does not take (the disk is full) goes on without the record: the file is as
 * it was before it, what is lost is counted, and the next record is tried again. Any thread may put at
 * any time. */
#ifndef KPTI_WRITERS_KPT_KPT_WRITER_H
#define KPTI_WRITERS_KPT_KPT_WRITER_H

#include <pthread.h>

#include "core/base/file_id.h"
#include "writers/annotations/notes.h"
#include "writers/io/output_file.h"
#include "writers/kpt/kpt_format.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_kpt_writer {
    pthread_mutex_t lock;
    kpti_out_file out;   /* of a file as a whole; of a stream only its place */
    int fd;              /* of a stream; else -1 */
    int own;             /* the stream's file was made here */
    kpti_file_id id;     /* of a stream */
    int torn;            /* it ends with half a record, and can't be put right */
    int error;           /* the first errno of a stream */
    uint64_t at;         /* the size of a stream */
    uint64_t lost_bytes; /* of chunks */
    uint32_t notes;      /* the last note that is there */
} kpti_kpt_writer;

/* Opens PATH. INFO: lines "key=value". 0 or an errno; to be closed after 0 only. Before, WRITER is
 * zeroed, and out may have what kpti_out_open takes. */
int kpti_kpt_create(kpti_kpt_writer *writer, const char *path, int stream, uint64_t pid,
                    int64_t base_ns, kpt_str info);

/* INFO again, since more is known now: the last one counts. */
void kpti_kpt_put_info(kpti_kpt_writer *writer, kpt_str info);

/* A kpt_chunk_fn, whose ctx is the writer. A stream refuses only tables, which then come again. */
kpt_status kpti_kpt_put_chunk(void *writer, const kpt_chunk *chunk);

/* Those of NOTES that are not there yet. Nobody may add to NOTES meanwhile. */
void kpti_kpt_put_notes(kpti_kpt_writer *writer, const kpti_notes *notes);

/* A record of any other kind, of two parts, the first a multiple of 8 long. 0 or an errno: a stream goes on without it. */
int kpti_kpt_put_record(kpti_kpt_writer *writer, uint32_t kind, const void *first,
                        size_t first_size, const void *second, size_t second_size);

/* Whether a stream is where it was made, and no other file is. */
int kpti_kpt_is_in_place(const kpti_kpt_writer *writer);

/* Ends the file. A stream stays where it is, ended or not; a whole one is only kept with KEEP. Returns 0
 * or the first errno of all: ESTALE, where nobody finds the stream any more. */
int kpti_kpt_close(kpti_kpt_writer *writer, int keep);

/* In the child of a fork: the stream goes on as its parent's alone. */
void kpti_kpt_leave(kpti_kpt_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
