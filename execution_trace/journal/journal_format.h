/* journal_format.h: what a journal looks like: a file of operators as they begin and end, in binary.
 *
 *   journal  a head, then chunks, each on a multiple of KPTI_ET_ALIGN bytes
 *   chunk    of one thread: a head, records from its beginning on, texts from its end down
 *   record   a multiple of 8 bytes, committed by the chunk's `used`: what is behind that may be anything
 *   text     a word with its length, then its bytes; named by its offset in the chunk, in words, once for
 *            all records of the chunk that have it; 0 is the empty text
 *   value    as kpt_tape.h has them; what KPT_TAPE_SAME names is a tensor without range and data, which others may
 *            have changed since
 *
 * Chunks lie in the file in the order in which they were begun. Stream 0 tells when recording began and
 * ended; the others are threads. Numbers are as the machine has them: a journal is read where it was
 * written. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_FORMAT_H
#define KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_FORMAT_H

#include <stdint.h>

#include "abi/kpt_tape.h"

#define KPTI_ET_MAGIC UINT64_C(0x324C4E524A54504B) /* KPTJRNL2 */

enum { KPTI_ET_ALIGN = 65536, KPTI_ET_WORD = 8, KPTI_ET_CHUNK_MAGIC = 0x4E43544B };
/* Streams have 16 bits in the numbers of operators. */
enum { KPTI_ET_MOST_STREAMS = 65536 };
/* The reference's observer has all of an operator's own values, and of a list the first KPT_TAPE_MOST_ITEMS; ours
 * end where no operator's do. */
enum { KPTI_ET_MOST_VALUES = 1 << 20 };

typedef struct kpti_et_head {
    uint64_t magic;
    uint64_t pid;
    int64_t unix_ns; /* both when it was opened */
    int64_t monotonic_ns;
    char time[32];     /* local, with a NUL */
    uint64_t dropped;  /* operators, for want of room */
    int64_t finish_ns; /* on the monotonic clock; 0: it was not closed */
} kpti_et_head;

typedef struct kpti_et_chunk {
    uint32_t magic;
    uint32_t stream;
    uint64_t words; /* all of it */
    uint64_t os_tid;
    uint64_t used; /* words of records, behind this head; stored with release */
} kpti_et_chunk;
enum { KPTI_ET_CHUNK_WORDS = sizeof(kpti_et_chunk) / KPTI_ET_WORD };

enum {
    KPTI_ET_BEGIN = 1,
    KPTI_ET_END = 2,
    KPTI_ET_PLACE = 3,
    KPTI_ET_STACK = 4,
    KPTI_ET_START = 5, /* stream 0 */
    KPTI_ET_STOP = 6   /* stream 0: what is open ends here */
};
/* Flags of records. */
enum {
    KPTI_ET_RAISED = 1 << 0,   /* an end */
    KPTI_ET_ELEMENTS = 1 << 1, /* a begin: there may be ranges or data among its values */
    KPTI_ET_HAS_MORE = 1 << 2  /* both: a kpti_et_more is behind them */
};

/* The head of each record; START and STOP have no more. */
typedef struct kpti_et_record {
    uint32_t words; /* with this */
    uint16_t kind;
    uint16_t flags;
    int64_t ns; /* on the monotonic clock */
} kpti_et_record;

/* What the calls of one operator on one thread have in common; named, as texts are, within the chunk. */
typedef struct kpti_et_function {
    uint64_t thread;
    uint64_t forward_thread;
    uint32_t scope;
    uint32_t name;
    uint32_t schema;
    uint32_t kernel_backend;
    uint32_t kernel_file;
    uint32_t is_call; /* it lies within one call of C */
} kpti_et_function;

/* What only few have. */
typedef struct kpti_et_more {
    uint64_t external_id;
    uint32_t attr_count;
    uint32_t error;
} kpti_et_more;

/* Behind it, and what more it has: values, then attributes, each a word with two texts (name, type) and a
 * value. */
typedef struct kpti_et_begin {
    kpti_et_record record;
    uint64_t record_id;
    int64_t sequence;
    uint32_t number; /* in its stream */
    uint32_t function;
    uint32_t stack;
    uint32_t value_count;
} kpti_et_begin;

/* Behind it as behind a begin. */
typedef struct kpti_et_end {
    kpti_et_record record;
    uint32_t stream; /* where it began */
    uint32_t number;
    uint32_t value_count;
    uint32_t spare;
} kpti_et_end;

typedef struct kpti_et_place {
    kpti_et_record record;
    uint32_t place;
    uint32_t line;
    uint32_t name;
    uint32_t file;
} kpti_et_place;

typedef struct kpti_et_stack {
    kpti_et_record record;
    uint32_t stack;
    uint32_t below;
    uint32_t place;
    uint32_t spare;
} kpti_et_stack;

static inline uint64_t kpti_et_words(uint64_t bytes)
{
    return bytes / KPTI_ET_WORD + (bytes % KPTI_ET_WORD != 0);
}

#endif
