/* thread_journal.h: a thread's stream in the journal: the chunk that the thread fills, and the caches of
 * the texts, functions and tensors that the chunk has.
 *
 * A stream belongs to one thread at a time and to one observer, and lives as long as the observer. Only its
 * thread changes it, with busy set. A thread that has stopped recording and has waited until no stream is
 * busy may read it. The stream of a thread that has ended passes to another thread, under the recorder's
 * lock.
 *
 *   records  [KPTI_ET_CHUNK_WORDS, low)    texts  [high, words)    low + reserve <= high
 *
 * The reserve is for the ends of open operators. So each operator whose begin was recorded also gets its
 * end in the journal, even if the disk is full. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_THREAD_JOURNAL_H
#define KPTI_EXECUTION_TRACE_RECORD_THREAD_JOURNAL_H

#include <stdatomic.h>
#include <string.h>

#include "abi/kpt_observer.h"
#include "core/base/assert.h"
#include "execution_trace/journal/journal.h"
#include "execution_trace/record/thread_clock.h"
#include "execution_trace/record/u32_set.h"

enum { KPTI_ET_TEXTS = 512, KPTI_ET_TENSORS = 1024, KPTI_ET_FUNCTIONS = 256 };
enum { KPTI_ET_MAX_RESERVE = 2048 /* words */ };
enum { KPTI_ET_MIN_END = sizeof(kpti_et_end) / KPTI_ET_WORD };

/* A text of the chunk, by its address in the host. The bytes at that address may have changed since. */
typedef struct kpti_et_known_text {
    const char *data;
    uint32_t size;
    uint32_t at;
} kpti_et_known_text;

/* A tensor of the chunk, by its id. */
typedef struct kpti_et_known_tensor {
    uint32_t id; /* low bits of the id; if they differ, the tensors need not be compared */
    uint32_t at; /* 0 if the slot is empty */
} kpti_et_known_tensor;

/* A record that the host is about to write on the tape: a begin or an end. */
typedef struct kpti_et_pending {
    int64_t ns;
    uint64_t gathered; /* on a begin: the token of its stack, or 0 */
    uint64_t op_id;    /* on an end */
    uint32_t stack;
    uint32_t words; /* of the record's head; 0 if no record is pending */
} kpti_et_pending;

typedef struct kpti_et_stream {
    /* Fields that each operator reads, on as few cache lines as possible. */
    kpt_tape tape;               /* first; its base is the chunk */
    struct kpti_recorder *owner; /* valid only while the owner's serial is equal to */
    uint64_t serial;             /* this one */
    _Atomic uint32_t busy;
    uint32_t run;  /* the run that number, open and call are for */
    uint64_t file; /* the file that all following fields are for */
    kpti_et_chunk *chunk;
    uint64_t low;
    uint64_t high;
    uint32_t index;
    uint32_t number;      /* of the last operator */
    uint64_t open;        /* operators */
    _Atomic uint64_t ops; /* in this file */
    kpti_et_now now;
    int64_t last_ns;        /* of the last record */
    uint32_t last_stack;    /* the last stack that was written; 0 if none */
    uint32_t call;          /* number of an open operator that is one C call; 0 if none */
    uint64_t call_gathered; /* token of that operator's stack; 0 if none */
    kpti_et_pending pending;

    struct kpti_et_stream *next; /* the next stream of the observer */
    uint64_t thread; /* number of its thread, unique in the process; 0 if the stream is free */
    uint64_t os_tid;
    uint64_t next_words; /* size of the next chunk */
    kpti_number_set locations;
    kpti_number_set stacks;
    kpti_et_known_text texts[KPTI_ET_TEXTS]; /* a slot with at 0 is empty */
    kpti_et_known_tensor tensors[KPTI_ET_TENSORS];
    uint32_t functions[KPTI_ET_FUNCTIONS]; /* their offsets; 0 if the slot is empty */
} kpti_et_stream;

/* A cursor writes a record. If there is no space, it writes nothing and counts the missing words. So a cursor
 * without space measures a record; the result is an upper bound. */
typedef struct kpti_et_cursor {
    kpti_et_stream *stream;
    uint64_t low;
    uint64_t capacity; /* end of the space for records; 0 if there is none */
    uint64_t missing;
    uint64_t begin;
} kpti_et_cursor;

static inline uint64_t kpti_et_reserve_for(uint64_t open)
{
    const uint64_t wanted = open * KPTI_ET_MIN_END;
    return wanted < KPTI_ET_MAX_RESERVE ? wanted : KPTI_ET_MAX_RESERVE;
}

static inline uint64_t kpti_et_reserve(const kpti_et_stream *s)
{
    return kpti_et_reserve_for(s->open);
}

/* Whether the chunk has space for the ends of the open operators. Called by the stream's thread. */
static inline int kpti_et_stream_is_valid(const kpti_et_stream *s)
{
    return !s->chunk || (s->low >= KPTI_ET_CHUNK_WORDS && s->low + kpti_et_reserve(s) <= s->high &&
                         s->high <= s->chunk->words && s->tape.base == (const uint64_t *)s->chunk);
}

/* Returns a cursor for a record that must leave RESERVE words free. */
static inline kpti_et_cursor kpti_et_cursor_at(kpti_et_stream *s, uint64_t reserve)
{
    const uint64_t capacity = s->chunk && s->high > reserve ? s->high - reserve : 0;
    kpti_assert(kpti_et_stream_is_valid(s));
    return (kpti_et_cursor){s, s->low, capacity, 0, s->low};
}

/* Returns a measuring cursor: every put fails, even of 0 words, and only counts the words needed. There may
 * be no chunk yet. */
static inline kpti_et_cursor kpti_et_cursor_dry(kpti_et_stream *s)
{
    return (kpti_et_cursor){s, 1, 0, 0, 0};
}

/* Returns space for WORDS words of the record, or NULL if there is none. */
static inline uint64_t *kpti_et_put(kpti_et_cursor *c, uint64_t words)
{
    uint64_t *at;
    if (__builtin_expect(c->low + words > c->capacity, 0)) {
        c->missing += words;
        return NULL;
    }
    at = (uint64_t *)c->stream->chunk + c->low;
    c->low += words;
    return at;
}

/* Returns the offset of TEXT in the chunk. Returns 0 if TEXT is empty or there is no space. */
uint32_t kpti_et_put_text(kpti_et_cursor *c, kpt_str text);

/* Returns 1 if the host promises that OP lies within one C call. OP may be the struct of an older host,
 * also on a tape. */
static inline int kpti_et_is_call(const kpt_op *op)
{
    return KPT_HAS(op, kpt_op, flags) && (op->flags & KPT_OP_IN_ONE_CALL) != 0;
}
/* Returns the offset of OP's function in the chunk, or 0 if there is no space. */
uint32_t kpti_et_put_function(kpti_et_cursor *c, const kpt_op *op);

/* Replaces the tensor T, which was just written in the last WORDS of the record, with a reference if the
 * chunk already has the same words. */
void kpti_et_dedup_tensor(kpti_et_cursor *c, const kpt_tensor *t, uint64_t words);

/* Commits the complete record to the journal. */
static inline void kpti_et_commit(kpti_et_cursor *c)
{
    kpti_et_stream *s = c->stream;
    kpti_assert(c->begin == s->low && c->low > c->begin && c->low <= c->capacity && !c->missing);
    ((kpti_et_record *)((uint64_t *)s->chunk + c->begin))->words = (uint32_t)(c->low - c->begin);
    s->low = c->low;
    kpti_assert(s->low <= s->high && s->high <= s->chunk->words);
    __atomic_store_n(&s->chunk->used, s->low - KPTI_ET_CHUNK_WORDS, __ATOMIC_RELEASE);
}

/* An operator's number is run << 48 | stream << 32 | number in the stream. It is never 0, since run > 0. */
static inline uint32_t kpti_et_run_of(uint64_t op_id)
{
    return (uint32_t)(op_id >> 48);
}
static inline uint32_t kpti_et_stream_index_of(uint64_t op_id)
{
    return (uint32_t)(op_id >> 32) & 0xFFFF;
}

/* Counts operator s->number + 1, whose begin was committed. Returns its number in the journal. */
static inline uint64_t kpti_et_stream_begun(kpti_et_stream *s)
{
    s->number++;
    s->open++;
    atomic_store_explicit(&s->ops, atomic_load_explicit(&s->ops, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    kpti_assert(kpti_et_stream_is_valid(s));
    return (uint64_t)s->run << 48 | (uint64_t)s->index << 32 | s->number;
}

/* Returns 1 if GATHERED, the stack token of the operator that began last, is not 0 and is not the token of
 * the open call. The caller then checks whether the operator is one C call. */
static inline int kpti_et_stream_may_call(const kpti_et_stream *s, uint64_t gathered)
{
    return gathered && gathered != s->call_gathered;
}
/* Records the last operator as one C call with the stack token GATHERED. */
static inline void kpti_et_stream_call(kpti_et_stream *s, uint64_t gathered)
{
    s->call = s->number;
    s->call_gathered = gathered;
}

/* Returns 1 if OP_ID has the index of this stream and the stream has open operators. */
static inline int kpti_et_stream_has(const kpti_et_stream *s, uint64_t op_id)
{
    return s->open && s->index == kpti_et_stream_index_of(op_id);
}

/* Records the end of OP_ID, which may be of any stream. */
static inline void kpti_et_stream_ended(kpti_et_stream *s, uint64_t op_id)
{
    if (!kpti_et_stream_has(s, op_id)) return;
    s->open--;
    if (s->call == (uint32_t)op_id) {
        s->call = 0;
        s->call_gathered = 0;
    }
}

/* Forgets the cached tensors after a record was abandoned, since the chunk does not have them. */
void kpti_et_stream_abort_record(kpti_et_stream *s);
/* Continues the stream in CHUNK. */
void kpti_et_stream_move(kpti_et_stream *s, kpti_et_chunk *chunk);
/* Resets all fields that belong to a file. */
void kpti_et_stream_reset(kpti_et_stream *s, uint64_t file, uint32_t index);
void kpti_et_stream_free(kpti_et_stream *s);

#endif
