/* op_recorder.c: see op_recorder.h. This is the hot path of every operator. */
#include "execution_trace/record/op_recorder.h"

#include <string.h>

#include "abi/impl/kpti_execution_trace.h"
#include "execution_trace/record/op_encoder.h"

/* Writes a record through a cursor. Called a second time, with a measuring cursor and then in a new chunk,
 * if the record did not fit. */
typedef void (*write_fn)(kpti_et_cursor *c, const void *what);

/* Commits the record if it is complete. Returns 0 if it is not. */
static inline int settle(kpti_et_cursor *c)
{
    if (__builtin_expect(c->missing != 0, 0)) {
        kpti_et_stream_abort_record(c->stream);
        return 0;
    }
    kpti_et_commit(c);
    return 1;
}

/* Writes a record that did not fit into a new chunk. Returns 0 if there is no chunk. */
static __attribute__((noinline)) int put_elsewhere(kpti_recorder *r, kpti_et_stream *s,
                                                   uint64_t reserve, write_fn write,
                                                   const void *what)
{
    const uint64_t max = UINT64_C(1) << 31; /* in words, since offsets of texts have 32 bits */
    kpti_et_cursor c = kpti_et_cursor_dry(s);
    write(&c, what);
    if (c.missing > max || !kpti_recorder_refill(r, s, c.missing)) return 0;
    c = kpti_et_cursor_at(s, reserve);
    write(&c, what);
    return settle(&c);
}

static inline __attribute__((always_inline)) int
put_record(kpti_recorder *r, kpti_et_stream *s, uint64_t reserve, write_fn write, const void *what)
{
    kpti_et_cursor c = kpti_et_cursor_at(s, reserve);
    write(&c, what);
    return settle(&c) || put_elsewhere(r, s, reserve, write, what);
}

/* --- stacks -------------------------------------------------------------------------------------- */

typedef struct location_of {
    uint32_t location;
    int64_t ns;
    kpt_symbol symbol;
} location_of;

static void write_place(kpti_et_cursor *c, const void *what)
{
    const location_of *p = what;
    const uint32_t name = kpti_et_put_text(c, p->symbol.qualname);
    const uint32_t file = kpti_et_put_text(c, p->symbol.file);
    kpti_et_location *location =
        (kpti_et_location *)kpti_et_put(c, sizeof *location / KPTI_ET_WORD);
    if (!location) return;
    *location = (kpti_et_location){.record = {.kind = KPTI_ET_LOCATION, .ns = p->ns},
                                   .location = p->location,
                                   .line = p->symbol.line,
                                   .name = name,
                                   .file = file};
}

static void write_stack(kpti_et_cursor *c, const void *what)
{
    kpti_et_stack *stack = (kpti_et_stack *)kpti_et_put(c, sizeof *stack / KPTI_ET_WORD);
    if (stack) *stack = *(const kpti_et_stack *)what;
}

KPTI_HOT int kpti_recorder_write_new_stack(kpti_recorder *r, kpti_et_stream *s, uint32_t stack,
                                           int64_t ns)
{
    const uint32_t innermost = stack;
    while (stack && !kpti_number_set_has(&s->stacks, stack)) {
        kpti_et_stack record = {.record = {.kind = KPTI_ET_STACK, .ns = ns}, .stack = stack};
        const uint64_t reserve = kpti_et_reserve(s);
        kpti_observer_stacks.read(stack, &record.below, &record.location);
        if (record.location && !kpti_number_set_has(&s->locations, record.location)) {
            const location_of p = {record.location, ns,
                                   kpti_observer_stacks.describe(record.location)};
            if (!put_record(r, s, reserve, write_place, &p) ||
                !kpti_number_set_add(&s->locations, record.location))
                return 0;
        }
        if (!put_record(r, s, reserve, write_stack, &record) ||
            !kpti_number_set_add(&s->stacks, stack))
            return 0;
        stack = record.below;
    }
    s->last_stack = innermost;
    return 1;
}

/* --- begins and ends ----------------------------------------------------------------------------- */

typedef struct beginning {
    const kpt_op *op;
    kpti_et_wish wish;
    uint32_t number;
    uint32_t stack;
    int64_t ns;
} beginning;

static inline uint16_t flag_of(kpti_et_more more)
{
    return more.external_id || more.attr_count || more.error ? KPTI_ET_HAS_MORE : 0;
}

static inline void put_more(kpti_et_cursor *c, kpti_et_more more)
{
    uint64_t *at = flag_of(more) ? kpti_et_put(c, sizeof more / KPTI_ET_WORD) : NULL;
    if (at) memcpy(at, &more, sizeof more);
}

static inline __attribute__((always_inline)) void write_begin(kpti_et_cursor *c, const void *what)
{
    const beginning *b = what;
    const kpt_op *op = b->op;
    const kpti_et_more more = {op->external_id, kpti_et_encoded(op->attr_count), 0};
    const uint32_t function = kpti_et_put_function(c, op);
    kpti_et_begin *at = (kpti_et_begin *)kpti_et_put(c, sizeof *at / KPTI_ET_WORD);
    if (at) {
        const int has_elements = b->wish.ranges || b->wish.data;
        *at = (kpti_et_begin){
            .record = {.kind = KPTI_ET_BEGIN,
                       .flags = (uint16_t)((has_elements ? KPTI_ET_ELEMENTS : 0) | flag_of(more)),
                       .ns = b->ns},
            .record_id = op->record_id,
            .sequence = op->sequence,
            .number = b->number,
            .function = function,
            .stack = b->stack,
            .value_count = kpti_et_encoded(op->value_count)};
    }
    put_more(c, more);
    kpti_et_encode(c, op, b->wish);
}

/* Returns 1 if NAME is in LIST, whose names are separated by commas. */
static int is_listed(const char *list, size_t size, kpt_str name)
{
    const char *end = list + size;
    while (list && list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const size_t length = (size_t)((comma ? comma : end) - list);
        if (length == name.size && length && memcmp(list, name.data, length) == 0) return 1;
        list += length + 1;
    }
    return 0;
}

kpt_status kpti_recorder_begin(kpti_recorder *r, const kpt_op *op, uint64_t *op_id)
{
    beginning b = {.op = op, .wish = {(r->flags & KPT_OBSERVER_RANGES) != 0, 0}};
    kpti_et_stream *s;
    uint32_t run = atomic_load_explicit(&r->recording, memory_order_relaxed);
    uint64_t gathered = 0;
    if (!run) return KPT_OK;
    if (r->flags & KPT_OBSERVER_STACKS) b.stack = kpti_recorder_gather(r, run, &gathered);
    s = kpti_recorder_enter(r, &run);
    if (!s) return KPT_OK;
    b.ns = s->last_ns = kpti_et_now_ns(&s->now);
    b.number = s->number + 1;
    b.wish.data = r->data_ops && is_listed(r->data_ops, r->data_ops_size, op->name);
    if (!kpti_recorder_write_stack(r, s, b.stack, b.ns)) b.stack = 0;
    if (b.number && put_record(r, s, kpti_et_reserve(s) + KPTI_ET_MIN_END, write_begin, &b)) {
        *op_id = kpti_et_stream_begun(s);
        if (kpti_et_stream_may_call(s, gathered) && kpti_et_is_call(op))
            kpti_et_stream_call(s, gathered);
    } else {
        kpti_recorder_drop(r);
    }
    kpti_recorder_leave(s);
    return KPT_OK;
}

typedef struct ending {
    uint64_t id;
    const kpt_op *op;
    kpt_str error;
    int has_raised;
    int64_t ns;
} ending;

static inline __attribute__((always_inline)) void write_end(kpti_et_cursor *c, const void *what)
{
    const ending *e = what;
    const kpti_et_more more = {0, kpti_et_encoded(e->op->attr_count),
                               kpti_et_put_text(c, e->error)};
    kpti_et_end *at = (kpti_et_end *)kpti_et_put(c, sizeof *at / KPTI_ET_WORD);
    if (at) {
        *at = (kpti_et_end){
            .record = {.kind = KPTI_ET_END,
                       .flags = (uint16_t)((e->has_raised ? KPTI_ET_RAISED : 0) | flag_of(more)),
                       .ns = e->ns},
            .stream = kpti_et_stream_index_of(e->id),
            .number = (uint32_t)e->id,
            .value_count = kpti_et_encoded(e->op->value_count)};
    }
    put_more(c, more);
    kpti_et_encode(c, e->op, (kpti_et_wish){0, 0});
}

/* Writes an end without values, for which the reserve has space. */
static __attribute__((noinline)) void put_least_end(kpti_recorder *r, kpti_et_stream *s, ending *e)
{
    static const kpt_op nothing;
    e->op = &nothing;
    e->error = (kpt_str){NULL, 0};
    (void)put_record(r, s, kpti_et_reserve(s), write_end, e);
}

kpt_status kpti_recorder_end(kpti_recorder *r, uint64_t op_id, const kpt_op *op, kpt_str error)
{
    ending e = {op_id, op, error, error.size != 0, 0};
    const uint32_t current = atomic_load_explicit(&r->recording, memory_order_relaxed);
    kpti_et_stream *s;
    uint32_t run;
    if (kpti_et_run_of(op_id) != current || !current) return KPT_OK; /* a stop has ended it */
    s = kpti_recorder_enter(r, &run);
    if (!s) return KPT_OK;
    if (run == kpti_et_run_of(op_id)) {
        e.ns = s->last_ns = kpti_et_now_ns(&s->now);
        kpti_et_stream_ended(s, op_id);
        if (!put_record(r, s, kpti_et_reserve(s), write_end, &e)) put_least_end(r, s, &e);
    }
    kpti_recorder_leave(s);
    return KPT_OK;
}
