/* kpt_writer.h: writes a .kpt file. A whole file appears when it is complete, like the files of all other
 * formats. A stream is at its path from the beginning: when a call returns, the system has the record, so a
 * crash does not lose it. The exception are chunks that a thread packs first (kpt_packing.h).
 *
 * If the system cannot write a record of a stream (the disk is full), the file stays as it was before that
 * record, the lost bytes are counted, and the next record is tried again. Any thread may put records at any
 * time. */
#ifndef KPTI_WRITERS_KPT_KPT_WRITER_H
#define KPTI_WRITERS_KPT_KPT_WRITER_H

#include <pthread.h>

#include "core/base/file_id.h"
#include "writers/annotations/notes.h"
#include "writers/io/output_file.h"
#include "writers/kpt/kpt_format.h"
#include "writers/kpt/kpt_packing.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_kpt_writer {
    pthread_mutex_t lock;
    kpti_out_file out;         /* for a whole file; a stream uses only its place */
    int fd;                    /* of a stream; -1 for a whole file */
    int own;                   /* the stream's file was created here */
    kpti_file_id id;           /* of a stream */
    int torn;                  /* the file ends with half a record that cannot be removed */
    int error;                 /* the first errno of a stream */
    uint64_t at;               /* size of a stream */
    uint64_t lost_bytes;       /* of chunks that could not be written */
    uint64_t lost_memory;      /* bytes of records of allocations that could not be written */
    uint32_t notes;            /* number of the last note written */
    kpti_kpt_packing *packing; /* NULL: chunks are written as they are */
} kpti_kpt_writer;

/* Opens PATH. INFO has lines "key=value". WRITER must be zeroed, except for fields of out that kpti_out_open
 * reads. Returns 0 or an errno. Only after 0 the caller must call kpti_kpt_close. */
int kpti_kpt_create(kpti_kpt_writer *writer, const char *path, int stream, uint64_t pid,
                    int64_t base_ns, kpt_str info);

/* From now on chunks of events are packed; those of a stream on a thread of its own. Call it before the first chunk.
 * Returns 0, or ENOMEM if there is no memory or no thread can be created: then they are not packed. */
int kpti_kpt_pack(kpti_kpt_writer *writer);

/* Waits until the system has all chunks that were put before. */
void kpti_kpt_drain(kpti_kpt_writer *writer);

/* Writes INFO again, with more lines. Readers use the last one. */
void kpti_kpt_put_info(kpti_kpt_writer *writer, kpt_str info);

/* A kpt_chunk_fn. Its ctx is the writer. A stream returns an error only for tables, which are then sent again. */
kpt_status kpti_kpt_put_chunk(void *writer, const kpt_chunk *chunk);

/* Writes the notes that were not written before. The caller must not add to NOTES meanwhile. */
void kpti_kpt_put_notes(kpti_kpt_writer *writer, const kpti_notes *notes);

/* Writes a record of any other kind, in two parts; the size of the first is a multiple of 8. Returns 0 or an
 * errno; a stream continues without the record. */
int kpti_kpt_put_record(kpti_kpt_writer *writer, uint32_t kind, const void *first,
                        size_t first_size, const void *second, size_t second_size);

/* The same for a record of allocations. One that a stream could not write counts as lost: the caller writes no other after it. */
int kpti_kpt_put_memory(kpti_kpt_writer *writer, const void *bytes, uint64_t size);

/* Returns whether the stream's path still leads to the stream's file. */
int kpti_kpt_is_in_place(const kpti_kpt_writer *writer);

/* Ends the file. A stream stays at its path in either case; a whole file is kept only if KEEP. Returns 0 or the
 * first errno, or ESTALE if the stream's path no longer leads to its file. */
int kpti_kpt_close(kpti_kpt_writer *writer, int keep);

/* In the child after a fork: closes the descriptor and leaves the stream to the parent. */
void kpti_kpt_leave(kpti_kpt_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
