/* journal_format.h: the format of a journal, a binary file of the begins and ends of operators.
 *
 *   journal  a head, then chunks, each on a multiple of KPTI_ET_ALIGN bytes
 *   chunk    of one thread: a head, records from its beginning on, texts from its end down
 *   record   a multiple of 8 bytes, committed by the chunk's `used`; the bytes behind `used` are undefined
 *   text     a word with its length, then its bytes. Records of the chunk refer to it by its offset in the
 *            chunk, in words, so the chunk has each text once; 0 is the empty text
 *   value    as in kpt_tape.h; KPT_TAPE_SAME refers to a tensor without range and data, since these may have
 *            changed since
 *
 * The chunks are in the file in the order in which they were begun. Stream 0 records when recording began
 * and ended; each other stream belongs to a thread. Fields that another thread or process reads while they change
 * are accessed with __atomic builtins: the structs are those of a mapped file, also for C++, which has no _Atomic. Numbers have the machine's byte order, so a journal is
 * read on the machine that wrote it. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_FORMAT_H
#define KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_FORMAT_H

#include <stdint.h>

#include "abi/kpt_tape.h"

#define KPTI_ET_MAGIC UINT64_C(0x324C4E524A54504B) /* KPTJRNL2 */

enum { KPTI_ET_ALIGN = 65536, KPTI_ET_WORD = 8, KPTI_ET_CHUNK_MAGIC = 0x4E43544B };
/* An operator's number has 16 bits for the stream. */
enum { KPTI_ET_MAX_STREAMS = 65536 };
/* torch's observer records all values of an operator, and the first KPT_TAPE_MOST_ITEMS items of a list.
 * Ours has this limit on values, which no operator reaches. */
enum { KPTI_ET_MAX_VALUES = 1 << 20 };

typedef struct kpti_et_head {
    uint64_t magic;
    uint64_t pid;
    int64_t unix_ns; /* unix_ns and monotonic_ns: the time when the journal was opened */
    int64_t monotonic_ns;
    char time[32];     /* local time, ends with a NUL */
    uint64_t dropped;  /* operators dropped for lack of space */
    int64_t finish_ns; /* on the monotonic clock; 0 if the journal was not closed */
} kpti_et_head;

typedef struct kpti_et_chunk {
    uint32_t magic;
    uint32_t stream;
    uint64_t words; /* of the whole chunk */
    uint64_t os_tid;
    uint64_t used; /* words of records, behind this head; stored with release */
} kpti_et_chunk;
enum { KPTI_ET_CHUNK_WORDS = sizeof(kpti_et_chunk) / KPTI_ET_WORD };

enum {
    KPTI_ET_BEGIN = 1,
    KPTI_ET_END = 2,
    KPTI_ET_LOCATION = 3,
    KPTI_ET_STACK = 4,
    KPTI_ET_START = 5, /* stream 0 */
    KPTI_ET_STOP = 6   /* stream 0; all open operators end here */
};
/* Flags of records. */
enum {
    KPTI_ET_RAISED = 1 << 0,   /* on an end */
    KPTI_ET_ELEMENTS = 1 << 1, /* on a begin: its values may have ranges or data */
    KPTI_ET_HAS_MORE = 1 << 2  /* on both: a kpti_et_more follows */
};

/* The head of each record. START and STOP consist of it alone. */
typedef struct kpti_et_record {
    uint32_t words; /* including this head */
    uint16_t kind;
    uint16_t flags;
    int64_t ns; /* on the monotonic clock */
} kpti_et_record;

/* The fields that all calls of one operator on one thread share. Records refer to it by its offset in the
 * chunk, as to a text. */
typedef struct kpti_et_function {
    uint64_t thread;
    uint64_t forward_thread;
    uint32_t scope;
    uint32_t name;
    uint32_t schema;
    uint32_t kernel_backend;
    uint32_t kernel_file;
    uint32_t is_call; /* the operator lies within one C call */
} kpti_et_function;

/* Fields that only few records have. */
typedef struct kpti_et_more {
    uint64_t external_id;
    uint32_t attr_count;
    uint32_t error;
} kpti_et_more;

/* Followed by a kpti_et_more if flagged, the values, and the attributes. An attribute is a word with two
 * texts (name, type) and a value. */
typedef struct kpti_et_begin {
    kpti_et_record record;
    uint64_t record_id;
    int64_t sequence;
    uint32_t number; /* in its stream */
    uint32_t function;
    uint32_t stack;
    uint32_t value_count;
} kpti_et_begin;

/* Followed by the same fields as a begin. */
typedef struct kpti_et_end {
    kpti_et_record record;
    uint32_t stream; /* in which the operator began */
    uint32_t number;
    uint32_t value_count;
    uint32_t spare;
} kpti_et_end;

typedef struct kpti_et_location {
    kpti_et_record record;
    uint32_t location;
    uint32_t line;
    uint32_t name;
    uint32_t file;
} kpti_et_location;

typedef struct kpti_et_stack {
    kpti_et_record record;
    uint32_t stack;
    uint32_t below;
    uint32_t location;
    uint32_t spare;
} kpti_et_stack;

static inline uint64_t kpti_et_words(uint64_t bytes)
{
    return bytes / KPTI_ET_WORD + (bytes % KPTI_ET_WORD != 0);
}

#endif
