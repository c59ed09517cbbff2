/* kpt_reader.h: reads our own file: record after record, each checked before it is given out. The file is
 * mapped, so that one which is larger than memory is fine; what is given out lives until it is closed. */
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
    KPTI_KPT_WHOLE = 0,   /* with the record that says so */
    KPTI_KPT_CUT_OFF = 1, /* without it: it is still written, or who wrote it was killed */
    KPTI_KPT_DAMAGED = 2, /* with something that is no record, or has another checksum */
    KPTI_KPT_LACKING = 3  /* as a whole one, which says that chunks found no room in it */
} kpti_kpt_state;

typedef struct kpti_kpt_reader {
    const char *bytes;
    uint64_t size;
    uint64_t at;     /* the next record; where reading ended, the first byte that is not used */
    uint64_t let_go; /* where it was when memory was last let go of */
    uint64_t pid;
    int64_t base_ns;
    kpti_kpt_state state; /* once the records have come to their end */
    kpt_str info;         /* lines "key=value"; likewise */
    kpti_notes *notes;    /* where notes go; NULL: nowhere */
    kpti_gpu_log *gpu;    /* where what GPUs did goes, which borrows from the file; NULL: nowhere */
    const char *why; /* what KPT_E_INVALID of kpti_kpt_next_chunk is about; NULL: there was none */
} kpti_kpt_reader;

/* Opens PATH. 0 or an errno, EBADMSG where it is no such file, or of another version: *WHY then has a
 * text. To be closed after 0 only. */
int kpti_kpt_open(kpti_kpt_reader *reader, const char *path, const char **why);

/* A kpt_next_chunk_fn, whose ctx is the reader. */
kpt_status kpti_kpt_next_chunk(void *reader, kpt_chunk *out);

/* The value of KEY in INFO, lines "key=value"; empty where there is none. */
kpt_str kpti_kpt_info(kpt_str info, const char *key);

/* The file's bytes stay where they are, but not in this process's resident memory: the system has them,
 * and gives them back when they are read again. To be called now and then in a long reading. */
void kpti_kpt_let_go(const kpti_kpt_reader *reader);

void kpti_kpt_unmap(kpti_kpt_reader *reader);

#ifdef __cplusplus
}
#endif
#endif
