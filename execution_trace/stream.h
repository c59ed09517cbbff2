/* stream.h: where a thread puts its records: the chunk that it fills, and the texts that the chunk has.
 *
 * A stream is of one thread at a time and of one observer, and lives as long as the observer. Only its thread
 * changes it, with busy set; who has ended recording and waited until nobody is busy may read it. That of a
 * thread that has ended goes to another one, under the recorder's lock.
 *
 *   records  [KPTI_ET_CHUNK_WORDS, low)    texts  [high, words)    low + reserve <= high
 *
 * The reserve is for the ends of the operators that are open: so an operator that was recorded as begun ends
 * in the journal as well, also on a full disk. */
#ifndef KPTI_ET_STREAM_H
#define KPTI_ET_STREAM_H

#include <string.h>

#include "journal.h"
#include "kpt_observer.h"
#include "now.h"
#include "number_set.h"

enum { KPTI_ET_TEXTS = 512, KPTI_ET_TENSORS = 1024, KPTI_ET_FUNCTIONS = 256 };
/* Of a record, so many tensors that are new to the chunk can be taken back without forgetting all others. */
enum { KPTI_ET_NEW_TENSORS = 30 };
enum { KPTI_ET_MOST_RESERVE = 2048 /* words */ };
enum { KPTI_ET_LEAST_END = sizeof(kpti_et_end) / KPTI_ET_WORD };

/* A text of the chunk, by where the host has it; what is there may have changed. */
typedef struct kpti_et_known_text {
    const char *data;
    uint32_t size;
    uint32_t at;
} kpti_et_known_text;

/* A tensor of the chunk. Those with a description are found by its low bits, others by their id. */
typedef struct kpti_et_known_tensor {
    uint64_t description; /* the host's; 0: none */
    uint32_t id;          /* its low bits: of another one nothing need be compared */
    uint32_t at;          /* 0: none */
} kpti_et_known_tensor;

/* A function of the chunk. Those with a description are found by its low bits, others by their texts. */
typedef struct kpti_et_known_function {
    uint64_t description; /* the host's, of its texts; 0: none */
    uint64_t thread;
    uint64_t forward_thread;
    uint32_t scope;
    uint32_t at; /* 0: none */
} kpti_et_known_function;

typedef struct kpti_et_stream {
    struct kpti_et_stream *next; /* of its observer */
    uint64_t thread;             /* which, of all that there ever were; 0: nobody's */
    uint64_t os_tid;
    uint32_t busy; /* atomic */
    uint32_t index;
    uint64_t file; /* that all of the following is for */
    kpti_et_chunk *chunk;
    uint64_t low;
    uint64_t high;
    uint64_t next_words; /* of the next chunk */
    uint32_t run;        /* that number and open are for */
    uint32_t number;     /* of the last operator */
    uint64_t open;       /* operators */
    uint64_t ops;        /* atomic; in this file */
    kpti_et_now now;
    int64_t last_ns; /* of the last record */
    kpti_number_set places;
    kpti_number_set stacks;
    uint32_t last_stack;    /* one of them; 0: none */
    uint32_t call;          /* the number of an operator, open, of one call; 0: none */
    uint64_t call_gathered; /* what its stack is known by; 0: none */
    uint32_t new_count;     /* tensors of the record that is in the making */
    uint16_t new_tensors[KPTI_ET_NEW_TENSORS];
    kpti_et_known_text texts[KPTI_ET_TEXTS]; /* at 0: none */
    kpti_et_known_tensor tensors[KPTI_ET_TENSORS];
    kpti_et_known_function functions[KPTI_ET_FUNCTIONS];
} kpti_et_stream;

/* A record in the making. Where room is missing nothing is written, and what is missing is counted: a
 * cursor without any room measures, an upper bound. */
typedef struct kpti_et_cursor {
    kpti_et_stream *stream;
    uint64_t low;
    uint64_t room; /* where it ends; 0: there is none */
    uint64_t missing;
    uint64_t begin;
    int has_unknown; /* a description that the chunk has not */
} kpti_et_cursor;

static inline uint64_t kpti_et_reserve(const kpti_et_stream *s)
{
    const uint64_t wanted = s->open * KPTI_ET_LEAST_END;
    return wanted < KPTI_ET_MOST_RESERVE ? wanted : KPTI_ET_MOST_RESERVE;
}

/* A record; RESERVE words are not for it. */
static inline kpti_et_cursor kpti_et_cursor_at(kpti_et_stream *s, uint64_t reserve)
{
    const uint64_t room = s->chunk && s->high > reserve ? s->high - reserve : 0;
    s->new_count = 0;
    return (kpti_et_cursor){s, s->low, room, 0, s->low, 0};
}

/* Nothing fits, not even no words: there may be no chunk. */
static inline kpti_et_cursor kpti_et_cursor_dry(kpti_et_stream *s)
{
    return (kpti_et_cursor){s, 1, 0, 0, 0, 0};
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

/* What OP is a call of, in the chunk; 0 where it is missing. */
uint32_t kpti_et_find_function(kpti_et_cursor *c, const kpt_op *op);
static inline uint32_t kpti_et_put_function(kpti_et_cursor *c, const kpt_op *op)
{
    const kpti_et_known_function *known =
        &c->stream->functions[op->description % KPTI_ET_FUNCTIONS];
    if (op->description && known->description == op->description && known->thread == op->thread &&
        known->forward_thread == op->forward_thread && known->scope == op->scope && c->room)
        return known->at;
    return kpti_et_find_function(c, op);
}

static inline void kpti_et_put_same(uint64_t *to, uint32_t at)
{
    const kpti_et_value same = {.kind = KPTI_ET_SAME, .size = at};
    memcpy(to, &same, sizeof same);
}

/* Names the tensor with this description, if the chunk is known to have it. 0: it is not. */
static inline int kpti_et_put_described(kpti_et_cursor *c, uint64_t description)
{
    const kpti_et_known_tensor *known = &c->stream->tensors[description % KPTI_ET_TENSORS];
    uint64_t *to;
    if (!description || known->description != description) return 0;
    to = kpti_et_put(c, 1);
    if (to) kpti_et_put_same(to, known->at);
    return 1;
}
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

/* A record that was begun does not come: what was remembered of it is not in the chunk. */
void kpti_et_stream_take_back(kpti_et_stream *s);
/* The stream goes on in CHUNK. */
void kpti_et_stream_move(kpti_et_stream *s, kpti_et_chunk *chunk);
/* Forgets all that belongs to a file. */
void kpti_et_stream_reset(kpti_et_stream *s, uint64_t file, uint32_t index);
void kpti_et_stream_free(kpti_et_stream *s);

#endif
