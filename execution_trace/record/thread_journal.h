/* thread_journal.h: where a thread puts its records: the chunk that it fills, and the texts that the chunk has.
 *
 * A stream is of one thread at a time and of one observer, and lives as long as the observer. Only its thread
 * changes it, with busy set; who has ended recording and waited until nobody is busy may read it. That of a
 * thread that has ended goes to another one, under the recorder's lock.
 *
 *   records  [KPTI_ET_CHUNK_WORDS, low)    texts  [high, words)    low + reserve <= high
 *
 * The reserve is for the ends of the operators that are open: so an operator that was recorded as begun ends
 * in the journal as well, also on a full disk. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_THREAD_JOURNAL_H
#define KPTI_EXECUTION_TRACE_RECORD_THREAD_JOURNAL_H

#include <string.h>

#include "abi/kpt_observer.h"
#include "execution_trace/journal/journal.h"
#include "execution_trace/record/thread_clock.h"
#include "execution_trace/record/u32_set.h"

enum { KPTI_ET_TEXTS = 512, KPTI_ET_TENSORS = 1024, KPTI_ET_FUNCTIONS = 256 };
enum { KPTI_ET_MOST_RESERVE = 2048 /* words */ };
enum { KPTI_ET_LEAST_END = sizeof(kpti_et_end) / KPTI_ET_WORD };

/* A text of the chunk, by where the host has it; what is there may have changed. */
typedef struct kpti_et_known_text {
    const char *data;
    uint32_t size;
    uint32_t at;
} kpti_et_known_text;

/* A tensor of the chunk, by its id. */
typedef struct kpti_et_known_tensor {
    uint32_t id; /* its low bits: of another one nothing need be compared */
    uint32_t at; /* 0: none */
} kpti_et_known_tensor;

/* What a host is about to write on the tape: a begin or an end. */
typedef struct kpti_et_pending {
    int64_t ns;
    uint64_t gathered; /* a begin: what its stack is known by; 0: none */
    uint64_t op_id;    /* an end */
    uint32_t stack;
    uint32_t words; /* of the record's head; 0: nothing is */
} kpti_et_pending;

typedef struct kpti_et_stream {
    /* What each operator looks at: as few lines of the processor's cache as can be. */
    kpt_tape tape;               /* first; its base is the chunk */
    struct kpti_recorder *owner; /* whose it is, */
    uint64_t serial;             /* as long as that has this number */
    uint32_t busy;               /* atomic */
    uint32_t run;                /* that number, open and the call are for */
    uint64_t file;               /* that all of the following is for */
    kpti_et_chunk *chunk;
    uint64_t low;
    uint64_t high;
    uint32_t index;
    uint32_t number; /* of the last operator */
    uint64_t open;   /* operators */
    uint64_t ops;    /* atomic; in this file */
    kpti_et_now now;
    int64_t last_ns;        /* of the last record */
    uint32_t last_stack;    /* that was told; 0: none */
    uint32_t call;          /* the number of an operator, open, of one call; 0: none */
    uint64_t call_gathered; /* what its stack is known by; 0: none */
    kpti_et_pending pending;

    struct kpti_et_stream *next; /* of its observer */
    uint64_t thread;             /* which, of all that there ever were; 0: nobody's */
    uint64_t os_tid;
    uint64_t next_words; /* of the next chunk */
    kpti_number_set places;
    kpti_number_set stacks;
    kpti_et_known_text texts[KPTI_ET_TEXTS]; /* at 0: none */
    kpti_et_known_tensor tensors[KPTI_ET_TENSORS];
    uint32_t functions[KPTI_ET_FUNCTIONS]; /* where they are; 0: none */
} kpti_et_stream;

/* A record in the making. Where room is missing nothing is written, and what is missing is counted: a
 * cursor without any room measures, an upper bound. */
typedef struct kpti_et_cursor {
    kpti_et_stream *stream;
    uint64_t low;
    uint64_t room; /* where it ends; 0: there is none */
    uint64_t missing;
    uint64_t begin;
} kpti_et_cursor;

static inline uint64_t kpti_et_reserve_for(uint64_t open)
{
    const uint64_t wanted = open * KPTI_ET_LEAST_END;
    return wanted < KPTI_ET_MOST_RESERVE ? wanted : KPTI_ET_MOST_RESERVE;
}

static inline uint64_t kpti_et_reserve(const kpti_et_stream *s)
{
    return kpti_et_reserve_for(s->open);
}

/* A record; RESERVE words are not for it. */
static inline kpti_et_cursor kpti_et_cursor_at(kpti_et_stream *s, uint64_t reserve)
{
    const uint64_t room = s->chunk && s->high > reserve ? s->high - reserve : 0;
    return (kpti_et_cursor){s, s->low, room, 0, s->low};
}

/* Nothing fits, not even no words: there may be no chunk. */
static inline kpti_et_cursor kpti_et_cursor_dry(kpti_et_stream *s)
{
    return (kpti_et_cursor){s, 1, 0, 0, 0};
}

/* WORDS of the record; NULL where there are none. */
static inline uint64_t *kpti_et_put(kpti_et_cursor *c, uint64_t words)
{
    uint64_t *at;
    if (__builtin_expect(c->low + words > c->room, 0)) {
        c->missing += words;
        return NULL;
    }
    at = (uint64_t *)c->stream->chunk + c->low;
    c->low += words;
    return at;
}

/* The text in the chunk; 0 for the empty one, or where it is missing. */
uint32_t kpti_et_put_text(kpti_et_cursor *c, kpt_str text);

/* Whether the host promises that OP lies within one call of C. OP may be of an older host, as on a tape. */
static inline int kpti_et_is_call(const kpt_op *op)
{
    return KPT_HAS(op, kpt_op, flags) && (op->flags & KPT_OP_IN_ONE_CALL) != 0;
}
/* What OP is a call of, in the chunk; 0 where it is missing. */
uint32_t kpti_et_put_function(kpti_et_cursor *c, const kpt_op *op);

/* T was just put, in WORDS of the record; where the chunk has the same words already, they are named
 * instead. */
void kpti_et_put_known(kpti_et_cursor *c, const kpt_tensor *t, uint64_t words);

/* The record is whole: from now on it is in the journal. */
static inline void kpti_et_commit(kpti_et_cursor *c)
{
    kpti_et_stream *s = c->stream;
    ((kpti_et_record *)((uint64_t *)s->chunk + c->begin))->words = (uint32_t)(c->low - c->begin);
    s->low = c->low;
    __atomic_store_n(&s->chunk->used, s->low - KPTI_ET_CHUNK_WORDS, __ATOMIC_RELEASE);
}

/* An operator's number = run << 48 | stream << 32 | number in the stream; never 0, as run > 0. */
static inline uint32_t kpti_et_run_of(uint64_t op_id)
{
    return (uint32_t)(op_id >> 48);
}
static inline uint32_t kpti_et_stream_index_of(uint64_t op_id)
{
    return (uint32_t)(op_id >> 32) & 0xFFFF;
}

/* The begin of operator s->number + 1 was committed; which number it has among all. */
static inline uint64_t kpti_et_stream_begun(kpti_et_stream *s)
{
    s->number++;
    s->open++;
    __atomic_store_n(&s->ops, s->ops + 1, __ATOMIC_RELAXED);
    return (uint64_t)s->run << 48 | (uint64_t)s->index << 32 | s->number;
}

/* Whether the operator that began last may be one call of which nothing is known yet: what its stack is known by
 * is GATHERED. */
static inline int kpti_et_stream_may_call(const kpti_et_stream *s, uint64_t gathered)
{
    return gathered && gathered != s->call_gathered;
}
/* It is. */
static inline void kpti_et_stream_call(kpti_et_stream *s, uint64_t gathered)
{
    s->call = s->number;
    s->call_gathered = gathered;
}

/* Whether OP_ID is one that began in this stream and is open. */
static inline int kpti_et_stream_has(const kpti_et_stream *s, uint64_t op_id)
{
    return s->open && s->index == kpti_et_stream_index_of(op_id);
}

/* OP_ID, of whichever stream, ends. */
static inline void kpti_et_stream_ended(kpti_et_stream *s, uint64_t op_id)
{
    if (!kpti_et_stream_has(s, op_id)) return;
    s->open--;
    if (s->call == (uint32_t)op_id) {
        s->call = 0;
        s->call_gathered = 0;
    }
}

/* A record that was begun does not come: what was remembered of its tensors is not in the chunk. */
void kpti_et_stream_take_back(kpti_et_stream *s);
/* The stream goes on in CHUNK. */
void kpti_et_stream_move(kpti_et_stream *s, kpti_et_chunk *chunk);
/* Forgets all that belongs to a file. */
void kpti_et_stream_reset(kpti_et_stream *s, uint64_t file, uint32_t index);
void kpti_et_stream_free(kpti_et_stream *s);

#endif
