#include "hosts/torch/exporter/events/event_table.h"

#include "core/base/hash.h"

enum { NO_EVENT = UINT32_MAX };

/* A call that is open at the current point of the delivery. */
typedef struct frame {
    uint32_t event; /* NO_EVENT if it is not in the table */
    uint32_t stack; /* with the call itself, if it is Python's */
    uint32_t call;  /* the id of the innermost Python call, or 0 */
} frame;

typedef struct open_range {
    uint64_t number;
    uint32_t event;
} open_range;

/* A thread. Its index in the table is the same. */
typedef struct track {
    kpt_thread raw;
    int shows_calls;
    uint32_t depth; /* of the last call, + 1 */
    frame *open;    /* by depth */
    uint32_t open_capacity;
    open_range *ranges;
    uint32_t range_capacity;
    uint32_t range_count;
    int64_t cut_ns; /* when calls were cut last … */
    frame cut;      /* … and the innermost of these */
} track;

typedef struct walk {
    kpti_event_table *table;
    kpti_torch_names names;
    track *tracks;
    uint32_t track_capacity;
    kpti_u64_map track_of; /* by torch's number: index + 1 */
    kpti_u64_map cut;      /* by the id of a call that goes on: its event + 1 */
    kpti_u64_map input_of; /* by the index of a name: the number of inputs */
    kpti_u64_map
        text_of;        /* by the index of a name: the number of a text, of operators and ranges */
    uint32_t operators; /* also annotations */
    uint32_t calls;
} walk;

/* --- the table -------------------------------------------------------------------------------- */

kpti_event *kpti_event_table_add(kpti_event_table *table)
{
    kpti_event *event;
    if (kpti_array_reach(&table->heap, &table->events, &table->capacity, table->count,
                         sizeof *table->events) != KPT_OK)
        return NULL;
    event = &table->events[table->count++];
    memset(event, 0, sizeof *event);
    return event;
}

/* Returns the number of the stack of a call NAME inside CALLER, or 0 if there is no memory. */
static uint32_t stack_in(kpti_event_table *table, uint32_t caller, uint32_t name)
{
    /* Both numbers fit, so that no two stacks have one key. */
    uint32_t *const number = kpti_u64_map_at(&table->stack_of, (uint64_t)caller << 32 | name);
    if (!number) return 0;
    if (*number) return *number;
    if (kpti_array_reach(&table->heap, &table->stacks, &table->stack_capacity,
                         table->stack_count + 1, sizeof *table->stacks) != KPT_OK)
        return 0;
    *number = ++table->stack_count;
    table->stacks[*number] = (kpti_event_stack){caller, name};
    return *number;
}

/* --- names and threads ------------------------------------------------------------------------ */

static kpt_status take_inputs(walk *w, const kpt_name *name)
{
    kpti_event_table *const t = w->table;
    uint32_t *const number = kpti_u64_map_at(&w->input_of, name->index);
    char *copy;
    if (!number) return KPT_E_MEMORY;
    if (*number || !name->function.size) return KPT_OK;
    if (kpti_array_reach(&t->heap, &t->inputs, &t->input_capacity, t->input_count + 1,
                         sizeof *t->inputs) != KPT_OK)
        return KPT_E_MEMORY;
    copy = kpti_heap_take(&t->heap, (size_t)name->function.size);
    if (!copy) return KPT_E_MEMORY;
    memcpy(copy, name->function.data, (size_t)name->function.size);
    *number = ++t->input_count;
    t->inputs[*number] = (kpt_str){copy, name->function.size};
    return KPT_OK;
}

static kpt_status take_name(walk *w, const kpt_name *name)
{
    uint32_t *text;
    kpt_status status;
    if (name->flags & KPT_NAME_INPUTS) return take_inputs(w, name);
    if (name->file.size) return kpti_torch_names_take(&w->names, name);
    /* The text of a range lives as long as the delivery only. */
    text = kpti_u64_map_at(&w->text_of, name->index);
    if (!text) return KPT_E_MEMORY;
    *text = kpti_event_names_text(&w->table->names, kpti_shown_name(name));
    if (!*text) return KPT_E_MEMORY;
    status = kpti_array_reach(&w->table->heap, &w->names.raw, &w->names.raw_capacity, name->index,
                              sizeof *w->names.raw);
    if (status == KPT_OK) w->names.raw[name->index] = *name;
    return status;
}

static kpt_status take_thread(walk *w, const kpt_thread *thread)
{
    kpti_event_table *const t = w->table;
    const kpti_torch_recording *const r = w->names.recording;
    uint64_t python_thread = 0;
    uint64_t number = 0;
    uint32_t *known;
    track *l;
    if (kpti_array_reach(&t->heap, &w->tracks, &w->track_capacity, thread->index,
                         sizeof *w->tracks) != KPT_OK ||
        kpti_array_reach(&t->heap, &t->threads, &t->thread_capacity, thread->index,
                         sizeof *t->threads) != KPT_OK)
        return KPT_E_MEMORY;
    l = &w->tracks[thread->index];
    l->raw = *thread;
    l->shows_calls = r->thread_of(r->ctx, thread, &python_thread, &number);
    known = kpti_u64_map_at(&w->track_of, number);
    if (!known) return KPT_E_MEMORY;
    if (!*known) *known = thread->index + 1;
    if (t->thread_count <= thread->index) t->thread_count = thread->index + 1;
    t->threads[thread->index] =
        (kpti_event_thread){number, thread->os_tid, *known - 1, l->shows_calls != 0};
    return KPT_OK;
}

/* --- calls ------------------------------------------------------------------------------------ */

static frame innermost(const track *l)
{
    return l->depth ? l->open[l->depth - 1] : (frame){NO_EVENT, 0, 0};
}

/* The frame around an operator: if its thread has none, the one of the thread that ran the forward operator. */
static frame around(walk *w, const track *l, const kpt_activity *a)
{
    const uint32_t *other;
    if (a->depth && a->depth <= l->depth) return l->open[a->depth - 1];
    if (a->kind != KPT_KIND_OPERATOR || !a->value1) return (frame){NO_EVENT, 0, 0};
    other = kpti_u64_map_at(&w->track_of, a->value1);
    return other && *other ? innermost(&w->tracks[*other - 1]) : (frame){NO_EVENT, 0, 0};
}

/* Returns the number that MAP has for the index of a name, or 0. */
static uint32_t number_in(kpti_u64_map *map, uint32_t name)
{
    const uint32_t *const number = kpti_u64_map_at(map, name);
    return number ? *number : 0;
}

static int is_call(uint32_t kind)
{
    return kind == KPT_KIND_PYTHON || kind == KPT_KIND_C;
}

/* The engine's operator around a node of autograd has no number. It belongs to the same forward operator. */
static void take_node(kpti_event *around, const kpti_event *node)
{
    if (around->kind != KPTI_EVENT_OPERATOR || around->sequence_plus_1) return;
    around->sequence_plus_1 = node->sequence_plus_1;
    around->forward_thread = node->forward_thread;
}

static void fill_operator(walk *w, kpti_event *event, const kpt_activity *a, const frame *parent)
{
    event->sequence_plus_1 = a->value0;
    event->forward_thread = a->value0 ? a->value1 : 0;
    event->inputs = a->line ? number_in(&w->input_of, a->line) : 0;
    event->scope = (uint8_t)w->names.raw[a->name].scope;
    event->kind = event->scope == KPT_SCOPE_USER ? KPTI_EVENT_ANNOTATION : KPTI_EVENT_OPERATOR;
    event->id = ++w->operators;
    if (event->sequence_plus_1 && event->forward_thread && parent->event != NO_EVENT)
        take_node(&w->table->events[parent->event], event);
}

static void fill_call(walk *w, kpti_event *event, const frame *parent)
{
    event->parent = parent->call;
    event->more = kpti_event_names_module(&w->table->names, event->name);
    event->kind = KPTI_EVENT_PYTHON;
    event->id = ++w->calls;
}

/* Returns the name of A, or 0 if there is no memory. */
static uint32_t name_of(walk *w, const track *l, const kpt_activity *a)
{
    const uint32_t text = number_in(&w->text_of, a->name);
    return text ? text : kpti_event_names_call(&w->table->names, &w->names, &l->raw, a);
}

static kpt_status add_call(walk *w, track *l, const kpt_activity *a, frame *out)
{
    kpti_event_table *const t = w->table;
    const frame parent = around(w, l, a);
    kpti_event *event;
    *out = (frame){NO_EVENT, parent.stack, parent.call};
    if (is_call(a->kind) && !l->shows_calls) return KPT_OK;
    event = kpti_event_table_add(t);
    if (!event) return KPT_E_MEMORY;
    out->event = t->count - 1;
    event->start_ns = event->end_ns = a->start_ns;
    event->thread = a->thread;
    event->stack = parent.stack;
    event->name = name_of(w, l, a);
    if (!event->name) return KPT_E_MEMORY;
    if (a->kind == KPT_KIND_OPERATOR) {
        fill_operator(w, event, a, &parent);
    } else if (is_call(a->kind)) {
        fill_call(w, event, &parent);
        out->call = event->id;
        out->stack = stack_in(t, parent.stack, event->name);
        if (!out->stack) return KPT_E_MEMORY;
    } else {
        event->kind = KPTI_EVENT_COLLECTION;
    }
    return KPT_OK;
}

static kpt_status begin(walk *w, track *l, const kpt_activity *a)
{
    frame made = {NO_EVENT, 0, 0};
    kpt_status status =
        kpti_array_reach(&w->table->heap, &l->open, &l->open_capacity, a->depth, sizeof *l->open);
    const uint32_t *cut = NULL;
    if (status != KPT_OK) return status;
    if (a->flags & KPT_ACTIVITY_CONTINUED) cut = kpti_u64_map_at(&w->cut, a->id);
    if (cut && *cut) { /* a further part: the call goes on */
        const kpti_event *const event = &w->table->events[*cut - 1];
        made = (frame){*cut - 1, event->stack, event->parent};
        if (event->kind == KPTI_EVENT_PYTHON) {
            made.call = event->id;
            made.stack = stack_in(w->table, event->stack, event->name);
        }
    } else {
        status = add_call(w, l, a, &made);
    }
    l->open[a->depth] = made;
    l->depth = a->depth + 1;
    return status;
}

static kpt_status end(walk *w, track *l, const kpt_activity *a)
{
    uint32_t index;
    if (a->depth >= l->depth) return KPT_OK;
    l->depth = a->depth;
    if (a->flags & KPT_ACTIVITY_CLAMPED && (!l->cut_ns || l->cut_ns != a->end_ns)) {
        l->cut_ns = a->end_ns;
        l->cut = l->open[a->depth];
    }
    index = l->open[a->depth].event;
    if (index == NO_EVENT) return KPT_OK;
    w->table->events[index].end_ns = a->end_ns;
    if (a->flags & KPT_ACTIVITY_CLAMPED) { /* it may go on */
        uint32_t *const cut = kpti_u64_map_at(&w->cut, a->id);
        if (!cut) return KPT_E_MEMORY;
        *cut = index + 1;
    }
    return KPT_OK;
}

/* --- annotations ------------------------------------------------------------------------------ */

static kpt_status begin_range(walk *w, track *l, const kpt_activity *a)
{
    kpti_event_table *const t = w->table;
    kpti_event *const event = kpti_event_table_add(t);
    if (!event || kpti_array_reach(&t->heap, &l->ranges, &l->range_capacity, l->range_count,
                                   sizeof *l->ranges) != KPT_OK)
        return KPT_E_MEMORY;
    l->ranges[l->range_count++] = (open_range){a->value0, t->count - 1};
    event->start_ns = event->end_ns = a->start_ns;
    event->thread = a->thread;
    /* The calls that were cut for it have begun before it. */
    event->stack = l->cut_ns == a->start_ns ? l->cut.stack : innermost(l).stack;
    event->name = number_in(&w->text_of, a->name);
    event->inputs = a->line ? number_in(&w->input_of, a->line) : 0;
    event->scope = (uint8_t)(a->value1 & 0xff);
    if (a->value1 >> 8 & KPT_OPERATOR_ASYNC) event->flags = KPTI_EVENT_ASYNC;
    event->kind = event->scope == KPT_SCOPE_USER ? KPTI_EVENT_ANNOTATION : KPTI_EVENT_OPERATOR;
    event->id = ++w->operators;
    return event->name ? KPT_OK : KPT_E_MEMORY;
}

static void end_range(walk *w, track *l, const kpt_activity *a)
{
    for (uint32_t i = l->range_count; i-- > 0;) {
        if (l->ranges[i].number != a->value0) continue;
        w->table->events[l->ranges[i].event].end_ns = a->start_ns;
        l->range_count--;
        memmove(&l->ranges[i], &l->ranges[i + 1], (l->range_count - i) * sizeof *l->ranges);
        return;
    }
}

/* --- the delivery ----------------------------------------------------------------------------- */

static kpt_status take_activity(walk *w, const kpt_activity *a)
{
    track *l;
    if (a->thread >= w->track_capacity) return KPT_E_INVALID;
    l = &w->tracks[a->thread];
    if (a->kind == KPT_KIND_RANGE_BEGIN) return begin_range(w, l, a);
    if (a->kind == KPT_KIND_RANGE_END) {
        end_range(w, l, a);
        return KPT_OK;
    }
    if (a->name >= w->names.raw_capacity) return KPT_E_INVALID;
    return a->phase == KPT_PHASE_BEGIN ? begin(w, l, a) : end(w, l, a);
}

static kpt_status take(void *ctx, const kpt_batch *batch)
{
    walk *const w = ctx;
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch) || batch->name_stride < sizeof(kpt_name)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = take_name(w, kpti_record(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = take_thread(w, kpti_record(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++)
        status = take_activity(w, kpti_record(batch->activities, batch->activity_stride, i));
    return status;
}

static kpt_status deliver(walk *w)
{
    const kpti_torch_recording *const r = w->names.recording;
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.order = KPT_ORDER_TIME; /* KPT_ORDER_START has no ranges */
    delivery.flags = KPT_DELIVER_PARTS | KPT_DELIVER_RANGES | KPT_DELIVER_INPUTS;
    delivery.end_ns = r->end_ns;
    delivery.convert = r->convert;
    delivery.convert_ctx = r->convert_ctx;
    delivery.sink = take;
    delivery.sink_ctx = w;
    return r->tracer.ops->get_events(r->tracer.self, &delivery);
}

static void free_walk(walk *w)
{
    for (uint32_t i = 0; i < w->track_capacity; i++) {
        free(w->tracks[i].open);
        free(w->tracks[i].ranges);
    }
    free(w->tracks);
    kpti_u64_map_free(&w->track_of);
    kpti_u64_map_free(&w->cut);
    kpti_u64_map_free(&w->input_of);
    kpti_u64_map_free(&w->text_of);
    kpti_torch_names_free(&w->names);
}

kpt_status kpti_event_table_make(kpti_event_table *table, const kpti_torch_recording *recording,
                                 const kpti_gpu_log *gpu)
{
    walk w;
    kpt_status status;
    memset(&w, 0, sizeof w);
    w.table = table;
    w.operators = (uint32_t)recording->numbers_before;
    status = kpti_torch_names_open(&w.names, recording);
    if (status == KPT_OK) status = deliver(&w);
    if (status == KPT_OK)
        status = kpti_event_table_add_memory(table, recording->memory, recording->memory_count);
    if (status == KPT_OK && !recording->has_no_links) status = kpti_event_table_link(table);
    table->cpu_count = table->count;
    if (status == KPT_OK && gpu) status = kpti_event_table_add_gpu(table, gpu);
    free_walk(&w);
    return status;
}

void kpti_event_table_free(kpti_event_table *table)
{
    for (uint32_t i = 1; i <= table->input_count; i++)
        free((void *)(uintptr_t)table->inputs[i].data);
    free(table->inputs);
    free(table->events);
    free(table->threads);
    free(table->stacks);
    free(table->memory);
    free(table->gpu);
    kpti_u64_map_free(&table->stack_of);
    kpti_event_names_free(&table->names);
}
