/* kpt_reader.h: reads a .kpt file record by record, and checks each record before the caller sees it. The file
 * is mapped, so it may be larger than memory. Returned pointers are valid until the file is unmapped. */
#ifndef KPTI_WRITERS_KPT_KPT_READER_H
#define KPTI_WRITERS_KPT_KPT_READER_H

#include "writers/annotations/notes.h"
#include "writers/gpu/gpu_log.h"
#include "writers/kpt/kpt_format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a file ends. */
typedef enum kpti_kpt_state {
    KPTI_KPT_WHOLE = 0, /* with a KPTI_KPT_END record */
    /* without one: the file is still being written, or its writer was killed */
    KPTI_KPT_CUT_OFF = 1,
    KPTI_KPT_DAMAGED = 2, /* with bytes that are no record, or with a wrong checksum */
    /* like a whole file, but chunks are missing because they could not be written */
    KPTI_KPT_LACKING = 3
} kpti_kpt_state;

/* Returns "whole", "cut off", "damaged" or "incomplete". */
const char *kpti_kpt_state_name(kpti_kpt_state state);

typedef struct kpti_kpt_reader {
    const char *bytes;
    uint64_t size;
    uint64_t at;     /* the next record; after the last, the first unused byte */
    uint64_t let_go; /* value of at when resident memory was last released */
    uint64_t pid;
    int64_t base_ns;
    kpti_kpt_state state;  /* valid after the last record */
    kpt_str info;          /* lines "key=value"; valid after the last record */
    kpti_notes *notes;     /* receives the notes; may be NULL */
    kpti_gpu_log *gpu;     /* receives the GPU records, and borrows from the file; may be NULL */
    uint64_t skipped;      /* records of a kind that this reader does not know */
    uint32_t skipped_kind; /* the last such kind */
    int has_memory;        /* there are records of allocations */
    uint32_t formats; /* the formats of the chunks so far, or-ed; not 0: there may be operators */
    const char *why;  /* why kpti_kpt_next_chunk returned KPT_E_INVALID, or NULL */
} kpti_kpt_reader;

/* Opens PATH. Returns 0 or an errno. EBADMSG means that it is no .kpt file or has another version; *WHY then
 * has a text. Only after 0 the caller must call kpti_kpt_unmap. */
int kpti_kpt_open(kpti_kpt_reader *reader, const char *path, const char **why);

/* Reads the next record. Returns its bytes, of which HEAD receives kind and size, or NULL after the last one: state then has
 * the reason. */
const char *kpti_kpt_next_record(kpti_kpt_reader *reader, kpti_kpt_record *head);
/* The next record is the first one again. */
void kpti_kpt_rewind(kpti_kpt_reader *reader);

/* A kpt_next_chunk_fn. Its ctx is the reader. */
kpt_status kpti_kpt_next_chunk(void *reader, kpt_chunk *out);

/* Returns the value of KEY in INFO, lines "key=value", or an empty string. */
kpt_str kpti_kpt_info(kpt_str info, const char *key);

/* Releases the file's pages from the resident memory of this process. The mapping stays valid, and the system
 * loads the pages again when they are read. Call it regularly in a long read. */
void kpti_kpt_release_pages(const kpti_kpt_reader *reader);

void kpti_kpt_unmap(kpti_kpt_reader *reader);

#ifdef __cplusplus
}
#endif
#endif
