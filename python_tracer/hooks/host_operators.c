#include "python_tracer/hooks/host_operators.h"

#include "core/callstacks/function_table.h"
#include "core/recording/operator_event.h"
#include "core/recording/serialized/metadata_sections.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/chunks/remote_ends.h"
#include "python_tracer/hooks/host_marks.h"
#include "python_tracer/hooks/operator_inputs.h"
#include "python_tracer/hooks/record_event.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/thread_sync.h"
#include "python_tracer/threads/traced_thread.h"

/* A token is never 0:
 *
 *   bit 63       a range
 *   bits 52–62   low bits of the run
 *   bits 28–51   low bits of the stream's index
 *   bits 0–27    the range's number, or the operator's function id */
#define RANGE (UINT64_C(1) << 63)
enum { STREAM_BITS = 24, RUN_BITS = 11 };
enum { MAX_DETAILS = 7 };

/* Numbers of ranges have this bit, so that they differ from the numbers of spans that hosts choose. */
#define RANGE_NUMBER (UINT32_C(1) << (KPTI_NUMBER_BITS - 1))

uint32_t kpti_operator_name(kpt_str name, uint32_t scope)
{
    const kpti_function_view view = {
        .display = name, .function = name, .kind = KPT_KIND_OPERATOR, .scope = scope};
    return kpti_function_intern(&view);
}

/* Enters the callback. Returns the calling thread with a stream for each tracer, or NULL if there is no memory. Dead
 * code objects are left to the next event of Python. */
static kpti_thread *enter(void)
{
    kpti_thread *thread = kpti_callback_begin(0);
    if (__builtin_expect(thread && kpti_is_behind(thread), 0)) kpti_sync_for_operator(thread);
    return thread;
}

static uint64_t now_of(const kpti_stream *stream)
{
    return stream->clock ? stream->clock(stream->clock_ctx) : kpti_ticks();
}

/* Whether OP has a number that takes a WIDE event. */
static int has_wide(const kpt_operator *op)
{
    return op->record_id || op->sequence_plus_1 > UINT32_MAX ||
           op->forward_thread > KPTI_OPERATOR_MAX_FORWARD;
}

static void append_wide(kpti_stream *stream, uint32_t what, uint64_t value, uint64_t now)
{
    kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_WIDE, what, now));
    kpti_stream_append_plain(stream, value);
}

/* Appends what is known of OP behind its ENTER or SPAN_BEGIN: one word, or up to MAX_DETAILS if it has large numbers. */
static void append_details(kpti_stream *stream, const kpt_operator *op, uint64_t now)
{
    const int has_sequence = op->sequence_plus_1 <= UINT32_MAX;
    const int has_forward = op->forward_thread <= KPTI_OPERATOR_MAX_FORWARD;
    if (!(op->sequence_plus_1 | op->forward_thread | op->record_id | op->text.size)) return;
    kpti_stream_append_plain(stream, kpti_operator_make((kpti_operator_fields){
                                         has_sequence ? (uint32_t)op->sequence_plus_1 : 0,
                                         op->flags & KPT_OPERATOR_ASYNC ? KPTI_OPERATOR_ASYNC : 0,
                                         op->text.size ? op->scope : 0,
                                         has_forward ? (uint32_t)op->forward_thread : 0,
                                     }));
    if (!has_sequence) append_wide(stream, KPTI_WIDE_SEQUENCE, op->sequence_plus_1 - 1, now);
    if (!has_forward) append_wide(stream, KPTI_WIDE_FORWARD, op->forward_thread, now);
    if (op->record_id) append_wide(stream, KPTI_WIDE_RECORD, op->record_id, now);
}

static uint64_t token_of(const kpti_stream *stream, uint32_t number)
{
    return (uint64_t)(stream->run & ((1U << RUN_BITS) - 1)) << (KPTI_NUMBER_BITS + STREAM_BITS) |
           (uint64_t)(stream->index & ((1U << STREAM_BITS) - 1)) << KPTI_NUMBER_BITS | number;
}

static uint64_t begin_operator(kpti_stream *stream, const kpt_operator *op)
{
    uint64_t now = now_of(stream);
    if (op->name >= KPTI_OPEN_SPAN) return 0;
    if ((op->inputs.size || has_wide(op)) &&
        !kpti_stream_make_space(stream, MAX_DETAILS + kpti_inputs_space(op->inputs), &now))
        return 0;
    if (!kpti_stream_append(stream, op->name << KPTI_KIND_BITS | KPTI_EVENT_ENTER, &now)) return 0;
    append_details(stream, op, now);
    if (op->inputs.size) kpti_inputs_append(stream, op->inputs, KPTI_CHUNK_FORMAT_INPUTS);
    return token_of(stream, op->name);
}

/* Returns how many bytes of TEXT are kept; a character of UTF-8 is not cut. */
static uint64_t kept_bytes(kpt_str text)
{
    uint64_t size = text.size;
    if (size <= KPTI_MAX_SPAN_NAME) return size;
    size = KPTI_MAX_SPAN_NAME;
    while (size > 0 && ((unsigned char)text.data[size] & 0xC0) == 0x80)
        size--;
    return size;
}

static uint64_t begin_range(kpti_tracer *tracer, kpti_stream *stream, const kpt_operator *op)
{
    const uint64_t size = kept_bytes(op->text);
    const uint32_t number =
        (atomic_fetch_add_explicit(&tracer->ranges, 1, memory_order_relaxed) & (RANGE_NUMBER - 1)) |
        RANGE_NUMBER;
    uint64_t now = now_of(stream);
    if (!kpti_stream_make_space(
            stream, kpti_text_events(size) + MAX_DETAILS + kpti_inputs_space(op->inputs), &now) ||
        !kpti_stream_append(stream, number << KPTI_KIND_BITS | KPTI_EVENT_SPAN_BEGIN, &now))
        return 0;
    append_details(stream, op, now);
    for (uint64_t at = 0; at < size; at += KPTI_TEXT_BYTES)
        kpti_stream_append_plain(stream, kpti_text_make(op->text.data + at, size - at));
    if (op->inputs.size) kpti_inputs_append(stream, op->inputs, KPTI_CHUNK_FORMAT_RANGE_INPUTS);
    atomic_store_explicit(&stream->spans, 1, memory_order_relaxed);
    return RANGE | token_of(stream, number);
}

/* Prepares the stream for operators of the host that has HANDLE. From now on they take the fast path, unless the host
 * has its own clock. */
static void prepare(kpti_stream *stream, kpt_handle handle, const kpt_operator *op)
{
    if (!atomic_load_explicit(&stream->format, memory_order_relaxed))
        atomic_store_explicit(&stream->format, KPTI_CHUNK_FORMAT_OPERATORS, memory_order_relaxed);
    atomic_store_explicit(&stream->host_writes, 1, memory_order_relaxed);
    if (!stream->attached) stream->host_value = op->thread;
    stream->direct_token = token_of(stream, 0);
    stream->direct_thread = op->thread;
    stream->direct_handle = stream->clock ? 0 : handle;
}

uint64_t kpti_operator_begin(kpti_tracer *tracer, kpt_handle handle, const kpt_operator *op)
{
    kpti_thread *thread = enter();
    kpti_stream *stream = thread ? kpti_host_stream(thread, tracer) : NULL;
    uint64_t token = 0;
    if (stream) {
        prepare(stream, handle, op);
        token = op->text.size ? begin_range(tracer, stream, op) : begin_operator(stream, op);
    }
    if (thread) kpti_slow_end(thread);
    return token;
}

/* The kind and number of the event that ends TOKEN's operator or range. */
static uint32_t end_word(uint64_t token)
{
    const uint32_t kind = token & RANGE ? KPTI_EVENT_SPAN_END : KPTI_EVENT_EXIT;
    return ((uint32_t)token & KPTI_MAX_NUMBER) << KPTI_KIND_BITS | kind;
}

static int is_of_stream(uint64_t token, const kpti_stream *stream)
{
    return token_of(stream, (uint32_t)token & KPTI_MAX_NUMBER) == (token & ~RANGE);
}

/* Whether TOKEN is of the tracer's current run. Its stream may have been freed: its thread has ended. */
static int is_of_run_locked(const kpti_tracer *tracer, uint64_t token)
{
    const uint64_t of_stream = (token & ~RANGE) >> KPTI_NUMBER_BITS;
    return of_stream >> STREAM_BITS ==
               ((uint64_t)(tracer->run_count - 1) & ((1U << RUN_BITS) - 1)) &&
           ((of_stream & ((1U << STREAM_BITS) - 1)) < tracer->stream_count);
}

/* Another thread began it. Of a range the recording has the time, too. */
static __attribute__((noinline, cold)) void end_far(kpti_tracer *tracer, uint64_t token)
{
    kpti_stream *stream;
    kpti_tracing_lock();
    if (tracer->bit) {
        for (stream = tracer->streams; stream && !is_of_stream(token, stream);)
            stream = stream->sibling;
        if (token & RANGE && is_of_run_locked(tracer, token))
            kpti_cross_thread_ends_add(tracer->env, &tracer->cross_thread_ends,
                                       (uint32_t)token & KPTI_MAX_NUMBER,
                                       kpti_tracer_ticks(tracer));
        if (stream) kpti_remote_ends_leave_locked(stream, end_word(token));
    }
    kpti_tracing_unlock();
}

void kpti_operator_end(kpti_tracer *tracer, uint64_t token)
{
    kpti_thread *thread = kpti_thread_self;
    kpti_stream *stream = NULL;
    if (thread) {
        kpti_callback_enter(thread, 0);
        stream = kpti_host_stream(thread, tracer);
        if (stream && is_of_stream(token, stream)) {
            uint64_t now = now_of(stream);
            (void)kpti_stream_append(stream, end_word(token), &now);
        } else {
            stream = NULL;
        }
        kpti_slow_end(thread);
    }
    if (!stream) end_far(tracer, token);
}

/* The fast path: an operator of a stream that has had one before. It touches as few cache lines as possible, since torch
 * evicts them between two operators: no handle, no tracer, and of the stream the first line only. A stream that has
 * ended has no limit, and that of a destroyed tracer has another handle. So neither needs a test. */

static kpti_operator_ops general; /* the plugin's; written once, before the first tracer is made */

/* Returns the calling thread's stream for the operators of HANDLE, or NULL. */
static inline kpti_stream *direct_stream(const kpti_thread *thread, kpt_handle handle)
{
    kpti_stream *stream = thread->streams;
    while (stream && stream->direct_handle != handle)
        stream = stream->next;
    return stream;
}

/* Whether OP is valid, is no range, and has nothing that takes more than one word beside its ENTER. */
static inline int is_plain(const kpt_operator *op)
{
    return op->struct_size == sizeof *op &&
           !(op->flags | op->scope | op->text.size | op->inputs.size | op->record_id) &&
           op->name - 1 < KPTI_OPEN_SPAN - 1 && op->sequence_plus_1 <= UINT32_MAX &&
           op->forward_thread <= KPTI_OPERATOR_MAX_FORWARD;
}

static KPTI_HOT kpt_status begin_direct(kpt_handle self, const kpt_operator *op, uint64_t *token)
{
    kpti_thread *thread = kpti_thread_self;
    kpti_stream *stream;
    if (__builtin_expect(!thread || !self || !op || !token || !is_plain(op), 0))
        return general.begin(self, op, token);
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    stream = direct_stream(thread, self);
    if (__builtin_expect(
            !stream || stream->direct_thread != op->thread ||
                !kpti_stream_append_quick(stream, op->name << KPTI_KIND_BITS | KPTI_EVENT_ENTER,
                                          kpti_ticks()),
            0)) {
        kpti_slow_end(thread);
        return general.begin(self, op, token);
    }
    if (op->sequence_plus_1 | op->forward_thread)
        kpti_stream_append_plain(
            stream, kpti_operator_make((kpti_operator_fields){(uint32_t)op->sequence_plus_1, 0, 0,
                                                              (uint32_t)op->forward_thread}));
    *token = stream->direct_token | op->name;
    kpti_slow_end(thread);
    return KPT_OK;
}

static KPTI_HOT kpt_status end_direct(kpt_handle self, uint64_t token)
{
    kpti_thread *thread = kpti_thread_self;
    const uint32_t function = (uint32_t)token & KPTI_MAX_NUMBER;
    kpti_stream *stream;
    if (__builtin_expect(!thread || !self || !function, 0)) return general.end(self, token);
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    stream = direct_stream(thread, self);
    if (__builtin_expect(!stream || (stream->direct_token | function) != token ||
                             !kpti_stream_append_quick(stream,
                                                       function << KPTI_KIND_BITS | KPTI_EVENT_EXIT,
                                                       kpti_ticks()),
                         0)) {
        kpti_slow_end(thread);
        return general.end(self, token);
    }
    kpti_slow_end(thread);
    return KPT_OK;
}

kpti_operator_ops kpti_operator_direct_ops(kpti_operator_ops plugin)
{
    general = plugin;
    return (kpti_operator_ops){begin_direct, end_direct};
}
