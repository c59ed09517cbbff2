#include "core/memory_log/event_packer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/varint.h"
#include "core/callstacks/code_location.h"
#include "core/callstacks/stack_trie.h"

enum { FIRST_SHIFT = 5, MAX_SHIFT = 12, UNITS_AN_EVENT = 6, NAMES_BYTES = 1 << 16 };

kpti_event_packer *kpti_event_packer_make(kpt_memory_sink_fn sink, void *sink_ctx,
                                          kpti_memory_pools *pools, uint64_t sample_bytes)
{
    kpti_event_packer *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->sink = sink;
    p->sink_ctx = sink_ctx;
    p->pools = pools;
    p->sample_bytes = sample_bytes;
    p->shift = FIRST_SHIFT;
    p->packer = calloc(1, sizeof *p->packer);
    p->events = malloc(sizeof(kpti_memory_record) + KPTI_EVENT_RECORD_BYTES);
    if (p->packer && p->events) {
        p->packer->spaces = p->spaces;
        return p;
    }
    kpti_event_packer_free(p);
    return NULL;
}

void kpti_event_packer_free(kpti_event_packer *p)
{
    if (!p) return;
    free(p->packer);
    free(p->nodes);
    free(p->symbols);
    kpti_u64_map_free(&p->texts);
    free(p->chain);
    free(p->names);
    free(p->events);
    free(p);
}

static void fail(kpti_event_packer *p, kpt_status status)
{
    if (p->status == KPT_OK) p->status = status;
}

static void deliver(kpti_event_packer *p, const void *record, uint64_t size)
{
    if (p->status == KPT_OK) fail(p, p->sink(p->sink_ctx, record, size));
}

/* --- names ------------------------------------------------------------------------------------- */

static void deliver_names(kpti_event_packer *p)
{
    const kpti_memory_record head = {KPTI_MEMORY_NAMES, p->names_count, 0, 0};
    if (!p->names_count) return;
    memcpy(p->names, &head, sizeof head);
    deliver(p, p->names, p->names_size);
    p->names_count = 0;
    p->names_size = 0;
}

/* Returns space for a name of at most SIZE bytes, or NULL if there is no memory. */
static char *begin_name(kpti_event_packer *p, uint64_t size, char letter)
{
    char *at;
    if (p->names_size > NAMES_BYTES) deliver_names(p);
    if (!p->names_size) p->names_size = sizeof(kpti_memory_record);
    if (!kpti_array_reserve(&kpti_malloc_heap, &p->names, &p->names_capacity,
                            p->names_size + size + 1, 1)) {
        fail(p, KPT_E_MEMORY);
        return NULL;
    }
    at = p->names + p->names_size;
    *at++ = letter;
    return at;
}

static void end_name(kpti_event_packer *p, const char *end)
{
    p->names_size = (uint64_t)(end - p->names);
    p->names_count++;
}

static char *put_text(char *at, kpt_str text)
{
    at = kpti_put_varint(at, text.size);
    if (text.size) memcpy(at, text.data, text.size);
    return at + text.size;
}

static uint32_t text_number(kpti_event_packer *p, kpt_str text)
{
    uint32_t *known = kpti_u64_map_at(&p->texts, kpti_text_key(text));
    char *at;
    if (!known) fail(p, KPT_E_MEMORY);
    if (!known || *known) return known ? *known : 0;
    at = begin_name(p, KPTI_MAX_VARINT + text.size, KPTI_MEMORY_TEXT);
    if (!at) return 0;
    end_name(p, put_text(at, text));
    return *known = ++p->text_count;
}

static uint32_t symbol_number(kpti_event_packer *p, uint32_t location)
{
    kpt_symbol symbol;
    uint32_t name;
    uint32_t file;
    char *at;
    if (!kpti_array_reserve(&kpti_malloc_heap, &p->symbols, &p->symbol_capacity,
                            location + UINT64_C(1), sizeof *p->symbols)) {
        fail(p, KPT_E_MEMORY);
        return 0;
    }
    if (p->symbols[location]) return p->symbols[location];
    symbol = kpti_code_location_symbol(location);
    name = text_number(p, symbol.qualname);
    file = text_number(p, symbol.file);
    at = name && file ? begin_name(p, (uint64_t)KPTI_MAX_VARINT * 3, KPTI_MEMORY_SYMBOL) : NULL;
    if (!at) return 0;
    at = kpti_put_varint(kpti_put_varint(at, name), file);
    end_name(p, kpti_put_varint(at, symbol.line));
    return p->symbols[location] = ++p->symbol_count;
}

/* Adds the node of a stack whose caller has one. */
static int add_node(kpti_event_packer *p, uint32_t stack)
{
    const uint32_t below = kpti_stack_below(stack);
    const uint32_t symbol = symbol_number(p, kpti_stack_place(stack));
    char *at = symbol ? begin_name(p, (uint64_t)KPTI_MAX_VARINT * 2, KPTI_MEMORY_NODE) : NULL;
    if (!at) return 0;
    at = kpti_put_varint(at, below ? p->nodes[below] : 0);
    end_name(p, kpti_put_varint(at, symbol));
    p->nodes[stack] = ++p->node_count;
    return 1;
}

/* Returns the number of STACK's node, which is added with those of its callers, or 0 if there is no memory. */
static __attribute__((noinline)) uint32_t make_node(kpti_event_packer *p, uint32_t stack)
{
    uint64_t count = 0;
    for (uint32_t at = stack; at; at = kpti_stack_below(at)) {
        if (!kpti_array_reserve(&kpti_malloc_heap, &p->nodes, &p->node_capacity, at + UINT64_C(1),
                                sizeof *p->nodes) ||
            !kpti_array_reserve(&kpti_malloc_heap, &p->chain, &p->chain_capacity, count + 1,
                                sizeof *p->chain)) {
            fail(p, KPT_E_MEMORY);
            return 0;
        }
        if (p->nodes[at]) break;
        p->chain[count++] = at;
    }
    while (count)
        if (!add_node(p, p->chain[--count])) return 0;
    return p->nodes[stack];
}

static uint32_t node_of(kpti_event_packer *p, uint32_t stack)
{
    if (!stack || (stack < p->node_capacity && p->nodes[stack])) return stack ? p->nodes[stack] : 0;
    return make_node(p, stack);
}

static uint64_t zigzag(int32_t value)
{
    return (uint32_t)value << 1 ^ (uint32_t)(value >> 31);
}

static __attribute__((noinline)) void add_pool(kpti_event_packer *p, uint32_t pool)
{
    static const kpti_block_tags other = {.device_type = -1, .device_index = -1};
    const kpti_block_tags *tags =
        pool < KPTI_POOLS_OWN ? &other
                              : atomic_load_explicit(&p->pools->slots[pool], memory_order_acquire);
    char *at;
    p->known_pools[pool] = 1;
    if (pool < KPTI_POOL_OTHER || !tags) return;
    p->spaces[pool] = tags->device_type ? (uint32_t)tags->device_type << 16 ^
                                              (uint32_t)tags->device_index ^ 0x80000000
                                        : 0;
    at = begin_name(p, KPTI_MAX_VARINT * 6 + tags->category_size + tags->owner_size,
                    KPTI_MEMORY_POOL);
    if (!at) return;
    at = kpti_put_varint(kpti_put_varint(at, pool), zigzag(tags->device_type));
    at = kpti_put_varint(kpti_put_varint(at, zigzag(tags->device_index)), tags->stream);
    at = put_text(at, (kpt_str){tags->text, tags->category_size});
    end_name(p, put_text(at, (kpt_str){tags->text + tags->category_size, tags->owner_size}));
}

/* --- events ------------------------------------------------------------------------------------ */

static void deliver_events(kpti_event_packer *p)
{
    const kpti_memory_record head = {KPTI_MEMORY_EVENTS, p->events_count, p->shift, 0};
    const uint64_t ticks = p->packer->model.ticks - p->since_ticks;
    if (!p->events_count) return;
    deliver_names(p); /* of these events */
    memcpy(p->events, &head, sizeof head);
    deliver(p, p->events, sizeof head + p->events_size);
    /* Time in units of a part of what passes between two events takes few bits. */
    for (p->shift = 0;
         p->shift < MAX_SHIFT && (ticks / p->events_count) >> (p->shift + 1) >= UNITS_AN_EVENT;)
        p->shift++;
    p->since_ticks = p->packer->model.ticks;
    p->events_count = 0;
    p->events_size = 0;
}

static void pack_event(kpti_event_packer *p, const kpti_event_run *run)
{
    const kpti_memory_event *e = &run->events[run->at];
    const kpti_memory_step step = {run->ticks,
                                   e->address,
                                   kpti_memory_size(e),
                                   run->os_tid,
                                   node_of(p, e->stack),
                                   (uint16_t)kpti_memory_pool(e),
                                   (uint16_t)kpti_memory_kind(e)};
    unsigned char *begin;
    unsigned char *end;
    if (!p->known_pools[step.pool]) add_pool(p, step.pool);
    if (p->events_size + KPTI_MEMORY_MAX_STEP > KPTI_EVENT_RECORD_BYTES) deliver_events(p);
    begin = p->events + sizeof(kpti_memory_record) + p->events_size;
    end = kpti_memory_pack(p->packer, begin, p->shift, &step);
    p->events_size += (uint32_t)(end - begin);
    p->events_count += end != begin;
}

/* --- the merge of runs ------------------------------------------------------------------------- */

/* Moves to the next event of a run. Returns 0 if there is none. */
static int next_event(kpti_event_run *run)
{
    for (; run->at < run->count; run->at++) {
        const kpti_memory_event *e = &run->events[run->at];
        if (kpti_memory_kind(e) != KPTI_MEMORY_TIME) {
            run->ticks = (run->high & ~UINT64_C(0xFFFFFFFF)) | e->ticks;
            return 1;
        }
        run->high = e->address;
    }
    return 0;
}

static int is_before(const kpti_event_run *a, const kpti_event_run *b)
{
    return a->ticks != b->ticks ? a->ticks < b->ticks : a < b;
}

/* Restores the order of a heap, of which only item AT may be too late. */
static void sift(kpti_event_run **heap, uint64_t count, uint64_t at)
{
    for (;;) {
        uint64_t least = at;
        kpti_event_run *moved = heap[at];
        for (uint64_t child = at * 2 + 1; child < count && child <= at * 2 + 2; child++)
            if (is_before(heap[child], heap[least])) least = child;
        if (least == at) return;
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

static const kpti_event_run *second(kpti_event_run *const *heap, uint64_t count)
{
    if (count < 2) return NULL;
    return count > 2 && is_before(heap[2], heap[1]) ? heap[2] : heap[1];
}

static void merge(kpti_event_packer *p, kpti_event_run **heap, uint64_t count, uint64_t until)
{
    for (uint64_t i = count; i-- > 0;)
        sift(heap, count, i);
    while (count && heap[0]->ticks <= until && p->status == KPT_OK) {
        kpti_event_run *run = heap[0];
        const kpti_event_run *other = second(heap, count);
        int more;
        do {
            pack_event(p, run);
            run->at++;
            more = next_event(run);
        } while (more && run->ticks <= until && (!other || is_before(run, other)));
        if (!more) heap[0] = heap[--count];
        if (count) sift(heap, count, 0);
    }
}

void kpti_event_packer_pack(kpti_event_packer *p, kpti_event_run *runs, uint64_t count,
                            uint64_t until)
{
    kpti_event_run **heap = malloc((count + 1) * sizeof *heap);
    uint64_t used = 0;
    if (!heap) fail(p, KPT_E_MEMORY);
    for (uint64_t i = 0; heap && i < count; i++)
        if (next_event(&runs[i])) heap[used++] = &runs[i];
    if (heap) merge(p, heap, used, until);
    free(heap);
    for (uint64_t i = 0; i < count && p->status != KPT_OK; i++)
        runs[i].at = runs[i].count; /* events that cannot be delivered are given up */
}

kpt_status kpti_event_packer_flush(kpti_event_packer *p, const kpti_clock_point *point, uint64_t hz,
                                   uint64_t dropped)
{
    struct {
        kpti_memory_record head;
        kpti_memory_state state;
    } record = {{KPTI_MEMORY_STATE, 1, 0, 0},
                {point->ticks, point->monotonic_ns, point->unix_ns, hz, dropped,
                 atomic_load_explicit(&p->pools->merged, memory_order_relaxed), p->sample_bytes}};
    deliver_events(p);
    deliver(p, &record, sizeof record);
    return p->status;
}
