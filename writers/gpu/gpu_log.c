#include "writers/gpu/gpu_log.h"

#include <string.h>

#include "core/base/assert.h"
#include "writers/annotations/library_file.h"
#include "writers/gpu/gpu_codec.h"
#include "writers/gpu/gpu_names.h"

enum { BLOCK_BYTES = 64 * 1024 };

void kpti_gpu_log_init(kpti_gpu_log *log, const kpti_heap *heap)
{
    memset(log, 0, sizeof *log);
    log->heap = log->texts.numbers.heap = log->texts.texts.heap = log->node_numbers.heap = *heap;
}

void kpti_gpu_log_free(kpti_gpu_log *log)
{
    kpti_gpu_log_forget(log);
    kpti_text_table_free(&log->texts);
    kpti_u64_map_free(&log->node_numbers);
    kpti_heap_give(&log->heap, log->nodes, log->node_capacity * sizeof *log->nodes);
    kpti_heap_give(&log->heap, log->devices, log->device_capacity * sizeof *log->devices);
    kpti_heap_give(&log->heap, log->names, log->name_capacity * sizeof *log->names);
    log->nodes = NULL;
    log->devices = NULL;
    log->names = NULL;
    log->node_capacity = log->node_count = 0;
    log->device_capacity = log->device_count = 0;
    log->name_capacity = log->name_count = 0;
}

/* --- texts and frames ------------------------------------------------------------------------- */

static char *put_as_it_is(char *out, kpt_str text)
{
    if (text.size) memcpy(out, text.data, (size_t)text.size);
    return out + text.size;
}

kpt_status kpti_gpu_log_text(kpti_gpu_log *log, kpt_str text, uint32_t *number)
{
    kpt_status status;
    *number = 0;
    if (!text.size || !text.data) return KPT_OK;
    status = kpti_text_table_at(&log->texts, text, put_as_it_is, number);
    if (status == KPT_OK) ++*number;
    return status;
}

static uint64_t key_of(const kpti_gpu_node *node)
{
    const uint32_t parts[] = {node->caller, node->function, node->file, node->line};
    return kpti_text_key((kpt_str){(const char *)parts, sizeof parts});
}

kpt_status kpti_gpu_log_node(kpti_gpu_log *log, const kpti_gpu_node *node, uint32_t *number)
{
    uint32_t *known = kpti_u64_map_at(&log->node_numbers, key_of(node));
    kpt_status status;
    kpti_assert(node->caller <= log->node_count); /* so that no chain of callers has a circle */
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        status = kpti_array_reach(&log->heap, &log->nodes, &log->node_capacity, log->node_count + 1,
                                  sizeof *log->nodes);
        if (status != KPT_OK) return status;
        *known = ++log->node_count;
        log->nodes[*known] = *node;
    }
    *number = *known;
    return KPT_OK;
}

/* --- devices and names ------------------------------------------------------------------------ */

/* Replaces TEXT by the log's own copy. */
static kpt_status keep_text(kpti_gpu_log *log, kpt_str *text)
{
    uint32_t number;
    kpt_status status = kpti_gpu_log_text(log, *text, &number);
    *text = kpti_gpu_text(log, number);
    return status;
}

kpt_status kpti_gpu_log_device(kpti_gpu_log *log, const kpt_gpu_device *device)
{
    uint32_t i = 0;
    kpt_gpu_device kept = *device;
    kpt_status status = keep_text(log, &kept.name);
    while (i < log->device_count && log->devices[i].index != device->index)
        i++;
    if (status == KPT_OK)
        status = kpti_array_reach(&log->heap, &log->devices, &log->device_capacity, i,
                                  sizeof *log->devices);
    if (status != KPT_OK) return status;
    log->devices[i] = kept;
    log->changes++;
    if (i == log->device_count) log->device_count++;
    return KPT_OK;
}

kpt_status kpti_gpu_log_name(kpti_gpu_log *log, const kpt_gpu_name *name)
{
    uint32_t i = 0;
    kpt_gpu_name kept = *name;
    kpt_status status = keep_text(log, &kept.name);
    while (i < log->name_count &&
           (log->names[i].what != name->what || log->names[i].id != name->id))
        i++;
    if (status == KPT_OK)
        status =
            kpti_array_reach(&log->heap, &log->names, &log->name_capacity, i, sizeof *log->names);
    if (status != KPT_OK) return status;
    log->names[i] = kept;
    log->changes++;
    if (i == log->name_count) log->name_count++;
    return KPT_OK;
}

const kpt_gpu_device *kpti_gpu_device_of(const kpti_gpu_log *log, uint32_t index)
{
    for (uint32_t i = 0; i < log->device_count; i++)
        if (log->devices[i].index == index) return &log->devices[i];
    return NULL;
}

kpt_str kpti_gpu_name_of(const kpti_gpu_log *log, uint32_t what, uint32_t id)
{
    for (uint32_t i = 0; i < log->name_count; i++)
        if (log->names[i].what == what && log->names[i].id == id) return log->names[i].name;
    return kpti_gpu_text(log, 0);
}

/* --- events ----------------------------------------------------------------------------------- */

/* Adds a new last block. With CAPACITY 0 its bytes are borrowed. */
static kpti_gpu_block *add_block(kpti_gpu_log *log, uint32_t capacity)
{
    kpti_gpu_block *b = kpti_heap_take(&log->heap, sizeof *b + capacity);
    if (!b) return NULL;
    memset(b, 0, sizeof *b);
    b->bytes = (const unsigned char *)(b + 1);
    b->capacity = capacity;
    if (log->last)
        log->last->next = b;
    else
        log->first = b;
    log->last = b;
    return b;
}

static void drop_first(kpti_gpu_log *log)
{
    kpti_gpu_block *b = log->first;
    kpti_assert(kpti_gpu_block_is_valid(b) && b->size <= log->bytes && b->count <= log->events);
    log->first = b->next;
    if (!log->first) log->last = NULL;
    log->bytes -= b->size;
    log->events -= b->count;
    kpti_heap_give(&log->heap, b, sizeof *b + b->capacity);
    kpti_assert(kpti_gpu_log_is_valid(log));
}

void kpti_gpu_log_forget(kpti_gpu_log *log)
{
    while (log->first)
        drop_first(log);
}

/* Returns the block with space for an event, or NULL if there is no memory. */
static kpti_gpu_block *block_with_space(kpti_gpu_log *log)
{
    kpti_gpu_block *b = log->last;
    if (b && b->capacity >= KPTI_GPU_MAX_BYTES && b->size <= b->capacity - KPTI_GPU_MAX_BYTES)
        return b;
    while (log->is_ring && log->most_bytes && log->first &&
           log->bytes + BLOCK_BYTES > log->most_bytes)
        drop_first(log);
    return add_block(log, BLOCK_BYTES);
}

kpt_status kpti_gpu_log_add(kpti_gpu_log *log, const kpt_gpu_event *event, uint32_t stack)
{
    char made_up[KPTI_GPU_MAX_WORDS];
    kpti_gpu_entry entry = {*event, 0, stack};
    kpt_str name = event->name.size ? event->name : kpti_gpu_words_for(event, made_up);
    kpti_gpu_block *b;
    kpt_status status;
    unsigned char *begin;
    uint32_t size;
    if (log->most_bytes && !log->is_ring && log->bytes >= log->most_bytes) {
        log->counts.dropped++;
        return KPT_OK;
    }
    status = kpti_gpu_log_text(log, name, &entry.text);
    if (status != KPT_OK) return status;
    b = block_with_space(log);
    if (!b) return KPT_E_MEMORY;
    begin = (unsigned char *)(b + 1) + b->size;
    size = (uint32_t)(kpti_gpu_pack(begin, &entry, &b->before) - begin);
    kpti_assert(size && size <= KPTI_GPU_MAX_BYTES);
    b->size += size;
    b->count++;
    b->before = entry;
    log->bytes += size;
    log->events++;
    log->kernels += event->kind == KPT_GPU_KERNEL;
    kpti_assert(kpti_gpu_block_is_valid(b) && kpti_gpu_log_is_valid(log));
    return KPT_OK;
}

/* Returns how many kernels are among the COUNT events from AT to END, or UINT64_MAX if these are not COUNT
 * valid events. */
static uint64_t check_events(const kpti_gpu_log *log, const unsigned char *at,
                             const unsigned char *end, uint64_t count)
{
    kpti_gpu_entry entry = kpti_gpu_nothing;
    uint64_t kernels = 0;
    for (; count > 0; count--) {
        at = kpti_gpu_unpack(at, end, &entry);
        if (!at || entry.text > log->texts.texts.count || entry.stack > log->node_count)
            return UINT64_MAX;
        kernels += entry.event.kind == KPT_GPU_KERNEL;
    }
    return at == end ? kernels : UINT64_MAX;
}

kpt_status kpti_gpu_log_borrow(kpti_gpu_log *log, const unsigned char *bytes, uint64_t size,
                               uint64_t count)
{
    const uint64_t kernels = size <= UINT32_MAX && count <= size
                                 ? check_events(log, bytes, bytes + size, count)
                                 : UINT64_MAX;
    kpti_gpu_block *b;
    if (kernels == UINT64_MAX) return KPT_E_INVALID;
    b = add_block(log, 0);
    if (!b) return KPT_E_MEMORY;
    b->bytes = bytes;
    b->size = (uint32_t)size;
    b->count = (uint32_t)count;
    log->bytes += size;
    log->events += count;
    log->kernels += kernels;
    return KPT_OK;
}

const kpti_gpu_entry *kpti_gpu_next(kpti_gpu_cursor *c)
{
    while (!c->left) {
        c->block = c->block ? c->block->next : c->log->first;
        if (!c->block) return NULL;
        c->at = c->block->bytes;
        c->left = c->block->count;
        c->entry = kpti_gpu_nothing;
    }
    c->at = kpti_gpu_unpack(c->at, c->block->bytes + c->block->size, &c->entry);
    if (!c->at) return NULL; /* the mapped file was changed by another process */
    c->left--;
    c->entry.event.name = kpti_gpu_text(c->log, c->entry.text);
    if (!c->log->shift) return &c->entry;
    c->shifted = c->entry;
    c->shifted.event.start_ns = kpti_shifted(c->log->shift, c->entry.event.start_ns);
    c->shifted.event.end_ns = kpti_shifted(c->log->shift, c->entry.event.end_ns);
    return &c->shifted;
}

/* --- stacks ----------------------------------------------------------------------------------- */

const kpti_gpu_node *kpti_gpu_own_frame(const kpti_gpu_log *log, uint32_t stack)
{
    const kpti_gpu_node *innermost = kpti_gpu_node_of(log, stack);
    const kpti_gpu_node *node = innermost;
    while (node && kpti_is_library_file(kpti_gpu_text(log, node->file)))
        node = kpti_gpu_node_of(log, node->caller);
    return node ? node : innermost;
}
