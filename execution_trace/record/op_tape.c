#include "execution_trace/record/op_tape.h"

#include "abi/impl/kpti_execution_trace.h"
#include "core/base/assert.h"
#include "execution_trace/record/op_recorder.h"

enum {
    BEGIN_WORDS = sizeof(kpti_et_begin) / KPTI_ET_WORD,
    END_WORDS = sizeof(kpti_et_end) / KPTI_ET_WORD,
    FUNCTION_WORDS = sizeof(kpti_et_function) / KPTI_ET_WORD
};

static inline kpti_et_stream *stream_of(kpt_tape *tape)
{
    return (kpti_et_stream *)tape;
}

/* Returns 1 if the stream can record in RUN without the slow path: RUN is not 0, the stream is set up for
 * RUN, it was not left behind by a fork, and no record is pending. */
static inline int is_ready(const kpti_et_stream *s, uint32_t run)
{
    return run && s->run == run && s->serial == s->owner->serial && !s->pending.words;
}

/* Marks the stream busy. Returns 0, with the stream not busy, if RUN is over. */
static inline int enter(kpti_et_stream *s, uint32_t run)
{
    const kpti_recorder *r = s->owner;
    if (__builtin_expect(kpti_recorder_enter_flag(r, s) == run && s->file == r->file, 1)) return 1;
    kpti_recorder_leave(s);
    return 0;
}

/* The thread that prepared the space ran on another processor, whose cache has the lines. So each begin and
 * each end prefetches two lines for writing, ahead of the current record; a record takes about as many. */
static inline void fetch_ahead(const kpt_tape *tape)
{
    enum { AHEAD = 40, LINE = 8 };
    __builtin_prefetch(tape->at + AHEAD, 1);
    __builtin_prefetch(tape->at + AHEAD + LINE, 1);
}

/* Provides space for a record with a head of WORDS words, without the last RESERVE words of the chunk.
 * Returns 0 if there is no space. */
static inline uint32_t offer(kpti_et_stream *s, uint32_t words, uint64_t reserve)
{
    if (__builtin_expect(!s->chunk || s->low + words + reserve > s->high, 0)) {
        s->pending.words = 0;
        kpti_recorder_leave(s);
        return 0;
    }
    kpti_assert(atomic_load(&s->busy) && !s->pending.words);
    s->pending.words = words;
    s->tape.at = s->tape.base + s->low + words;
    s->tape.limit = s->tape.base + s->high - reserve;
    fetch_ahead(&s->tape);
    return 1;
}

KPTI_HOT static uint32_t begin(kpt_tape *tape)
{
    kpti_et_stream *s = stream_of(tape);
    kpti_recorder *r = s->owner;
    const uint32_t run = atomic_load_explicit(&r->recording, memory_order_relaxed);
    uint64_t gathered = s->call_gathered;
    uint32_t stack = 0;
    if (!is_ready(s, run)) return 0;
    if (r->flags & KPT_OBSERVER_STACKS) /* before the stream is busy: this may run Python */
        stack = kpti_observer_stacks.gather(r->stack_depth, &gathered);
    if (!enter(s, run)) return 0;
    s->pending.ns = s->last_ns = kpti_et_now_ns(&s->now);
    if (!kpti_recorder_write_stack(r, s, stack, s->last_ns)) stack = 0;
    s->pending.gathered = gathered;
    s->pending.stack = stack;
    return offer(s, BEGIN_WORDS, kpti_et_reserve(s) + KPTI_ET_MIN_END);
}

/* Returns a cursor behind the words that the host has used. */
static kpti_et_cursor cursor_of(const kpt_tape *tape, kpti_et_stream *s)
{
    return (kpti_et_cursor){s, (uint64_t)(tape->at - tape->base),
                            (uint64_t)(tape->limit - tape->base), 0, s->low};
}

static uint32_t put_text(kpt_tape *tape, kpt_str text)
{
    kpti_et_stream *s = stream_of(tape);
    kpti_et_cursor c = cursor_of(tape, s);
    const uint32_t at = s->pending.words ? kpti_et_put_text(&c, text) : 0;
    tape->limit = tape->base + c.capacity;
    return at;
}

static uint32_t put_function(kpt_tape *tape, const kpt_op *op)
{
    kpti_et_stream *s = stream_of(tape);
    kpti_et_cursor c = cursor_of(tape, s);
    const uint32_t at = s->pending.words ? kpti_et_put_function(&c, op) : 0;
    tape->limit = tape->base + c.capacity;
    return c.missing ? 0 : at;
}

/* Returns 1 if the host has written its values within the provided space. */
static inline int is_within(const kpt_tape *tape, const kpti_et_stream *s)
{
    return s->pending.words && tape->at >= tape->base + s->low + s->pending.words &&
           tape->at <= tape->limit;
}

/* Commits the record to the journal. The stream stays busy until the caller leaves. */
static inline void commit(kpt_tape *tape, kpti_et_stream *s)
{
    kpti_et_cursor c = cursor_of(tape, s);
    kpti_assert(is_within(tape, s) && atomic_load(&s->busy));
    s->pending.words = 0;
    kpti_et_commit(&c);
}

static void give_up(kpt_tape *tape)
{
    stream_of(tape)->pending.words = 0;
    kpti_recorder_leave(stream_of(tape));
}

KPTI_HOT static uint64_t begun(kpt_tape *tape, uint32_t function, uint64_t record_id,
                               int64_t sequence, uint32_t value_count)
{
    kpti_et_stream *s = stream_of(tape);
    const uint64_t gathered = s->pending.gathered;
    uint64_t op_id;
    if (__builtin_expect(!is_within(tape, s) || function < s->high ||
                             (uint64_t)function + FUNCTION_WORDS > s->chunk->words ||
                             s->number == UINT32_MAX,
                         0)) {
        give_up(tape);
        return 0;
    }
    *(kpti_et_begin *)(tape->base + s->low) =
        (kpti_et_begin){.record = {.kind = KPTI_ET_BEGIN, .ns = s->pending.ns},
                        .record_id = record_id,
                        .sequence = sequence,
                        .number = s->number + 1,
                        .function = function,
                        .stack = s->pending.stack,
                        .value_count = value_count};
    commit(tape, s);
    op_id = kpti_et_stream_begun(s);
    if (kpti_et_stream_may_call(s, gathered) &&
        ((const kpti_et_function *)(tape->base + function))->is_call)
        kpti_et_stream_call(s, gathered);
    kpti_recorder_leave(s);
    return op_id;
}

KPTI_HOT static uint32_t end(kpt_tape *tape, uint64_t op_id)
{
    kpti_et_stream *s = stream_of(tape);
    const uint32_t run = kpti_et_run_of(op_id);
    if (!is_ready(s, run) || !enter(s, run)) return 0;
    s->pending.ns = s->last_ns = kpti_et_now_ns(&s->now);
    s->pending.op_id = op_id;
    return offer(s, END_WORDS, kpti_et_reserve_for(s->open - (kpti_et_stream_has(s, op_id) != 0)));
}

KPTI_HOT static void ended(kpt_tape *tape, uint32_t value_count)
{
    kpti_et_stream *s = stream_of(tape);
    const uint64_t op_id = s->pending.op_id;
    if (__builtin_expect(!s->pending.words, 0)) return;
    if (__builtin_expect(!is_within(tape, s), 0)) {
        tape->at = tape->base + s->low + END_WORDS;
        value_count = 0;
    }
    *(kpti_et_end *)(tape->base + s->low) =
        (kpti_et_end){.record = {.kind = KPTI_ET_END, .ns = s->pending.ns},
                      .stream = kpti_et_stream_index_of(op_id),
                      .number = (uint32_t)op_id,
                      .value_count = value_count};
    commit(tape, s);
    kpti_et_stream_ended(s, op_id);
    kpti_recorder_leave(s);
}

const kpt_tape_ops kpti_et_tape_ops = {
    .struct_size = sizeof kpti_et_tape_ops,
    .begin = begin,
    .text = put_text,
    .function = put_function,
    .begun = begun,
    .end = end,
    .ended = ended,
    .give_up = give_up,
};
