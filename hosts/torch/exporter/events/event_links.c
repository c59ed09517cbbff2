/* What a table has beside the calls of a recording: [memory] instants, and the links of forward operators. */
#include "hosts/torch/exporter/events/event_table.h"

/* --- [memory] --------------------------------------------------------------------------------- */

/* Returns the thread with torch's NUMBER, which is added if no call was recorded on it. */
static kpt_status thread_of(kpti_event_table *t, uint64_t number, uint32_t *index)
{
    for (*index = 0; *index < t->thread_count; ++*index)
        if (t->threads[*index].number == number) return KPT_OK;
    if (kpti_array_reach(&t->heap, &t->threads, &t->thread_capacity, t->thread_count,
                         sizeof *t->threads) != KPT_OK)
        return KPT_E_MEMORY;
    t->threads[t->thread_count++] = (kpti_event_thread){number, number, *index, 0};
    return KPT_OK;
}

static kpt_status make_instant(kpti_event_table *t, uint32_t record, const uint32_t names[2],
                               kpti_event *out)
{
    const kpti_torch_memory *const memory = &t->memory[record];
    memset(out, 0, sizeof *out);
    out->start_ns = out->end_ns = memory->at_ns;
    out->kind = KPTI_EVENT_MEMORY;
    out->name = names[(memory->flags & KPTI_TORCH_OUT_OF_MEMORY) != 0];
    out->more = record;
    return thread_of(t, memory->tid, &out->thread);
}

kpt_status kpti_event_table_add_memory(kpti_event_table *table, const kpti_torch_memory *memory,
                                       uint64_t reports)
{
    const uint32_t calls = table->count;
    const uint32_t count = (uint32_t)reports;
    uint32_t left = calls;
    uint32_t names[2];
    if (!count) return KPT_OK;
    if (reports > UINT32_MAX - calls) return KPT_E_LIMIT;
    names[0] = kpti_event_names_text(&table->names, kpt_str_of("[memory]"));
    names[1] = kpti_event_names_text(&table->names, kpt_str_of("[OutOfMemory]"));
    if (!names[0] || !names[1] ||
        kpti_array_reach(&table->heap, &table->memory, &table->memory_capacity, count - 1,
                         sizeof *memory) != KPT_OK ||
        kpti_array_reach(&table->heap, &table->events, &table->capacity, calls + count - 1,
                         sizeof *table->events) != KPT_OK)
        return KPT_E_MEMORY;
    memcpy(table->memory, memory, count * sizeof *memory);
    table->memory_count = count;
    table->count += count;
    for (uint32_t to = table->count, record = count; record > 0;) { /* from the end */
        kpti_event *const events = table->events;
        if (left && events[left - 1].start_ns > table->memory[record - 1].at_ns)
            events[--to] = events[--left];
        else if (make_instant(table, --record, names, &events[--to]) != KPT_OK)
            return KPT_E_MEMORY;
    }
    return KPT_OK;
}

/* --- links ------------------------------------------------------------------------------------ */

typedef struct ending {
    int64_t end_ns;
    uint32_t event;
} ending;

static int compare_endings(const void *left, const void *right)
{
    const ending *const a = left;
    const ending *const b = right;
    if (a->end_ns != b->end_ns) return a->end_ns < b->end_ns ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

/* As in torch: a number in the low bits, a thread in the high ones. */
static uint64_t key_of(uint64_t thread, uint64_t sequence)
{
    return (thread << 48 | (sequence & UINT64_C(0xFFFFFFFFFFFF))) & (UINT64_MAX >> 1);
}

/* Takes the events by their end. Among forward operators with one number, the one that begins last has the link. */
static kpt_status link_next(kpti_event_table *t, kpti_u64_map *forward_of, uint32_t index,
                            uint32_t *links)
{
    kpti_event *const event = &t->events[index];
    const uint64_t thread =
        event->forward_thread ? event->forward_thread : t->threads[event->thread].number;
    uint32_t *const forward =
        kpti_u64_map_at(forward_of, key_of(thread, event->sequence_plus_1 - 1));
    if (!forward) return KPT_E_MEMORY;
    if (!event->forward_thread) {
        if (thread && (!*forward || event->start_ns >= t->events[*forward - 1].start_ns))
            *forward = index + 1;
    } else if (*forward) {
        event->flow = t->events[*forward - 1].flow = ++*links;
        t->events[*forward - 1].flags |= KPTI_EVENT_FLOW_START;
        *forward = 0; /* the next node with the number has no link */
    }
    return KPT_OK;
}

kpt_status kpti_event_table_link(kpti_event_table *table)
{
    kpti_u64_map forward_of = {.heap = table->heap};
    ending *const endings = malloc(((size_t)table->count + 1) * sizeof *endings);
    kpt_status status = endings ? KPT_OK : KPT_E_MEMORY;
    uint32_t count = 0;
    uint32_t links = 0;
    for (uint32_t i = 0; status == KPT_OK && i < table->count; i++)
        if (table->events[i].sequence_plus_1)
            endings[count++] = (ending){table->events[i].end_ns, i};
    if (count) qsort(endings, count, sizeof *endings, compare_endings);
    for (uint32_t i = 0; status == KPT_OK && i < count; i++)
        status = link_next(table, &forward_of, endings[i].event, &links);
    kpti_u64_map_free(&forward_of);
    free(endings);
    return status;
}
