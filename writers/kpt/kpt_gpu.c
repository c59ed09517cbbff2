#include "writers/kpt/kpt_gpu.h"

/* Texts and nodes are written in records of about this size, which bounds a stream's memory. */
enum { RECORD_BYTES = 64 * 1024 };

static int put(kpti_kpt_writer *w, uint32_t what, uint32_t first, uint32_t count, const void *bytes,
               size_t size)
{
    const kpti_kpt_gpu head = {what, count, first, 0};
    return kpti_kpt_put_record(w, KPTI_KPT_GPU, &head, sizeof head, bytes, size);
}

static int put_texts(kpti_kpt_writer *w, const kpti_gpu_log *log, kpti_gpu_written *written)
{
    const uint32_t all = log->texts.texts.count;
    int error = 0;
    while (!error && written->texts < all) {
        const uint32_t first = written->texts + 1;
        uint32_t last = written->texts;
        size_t size = 0;
        char *bytes;
        char *at;
        do {
            last++;
            size += sizeof(uint32_t) + (size_t)kpti_gpu_text(log, last).size;
        } while (last < all && size < RECORD_BYTES);
        at = bytes = kpti_heap_take(&log->heap, size);
        if (!bytes) return 1;
        for (uint32_t i = first; i <= last; i++) {
            const kpt_str text = kpti_gpu_text(log, i);
            const uint32_t text_size = (uint32_t)text.size;
            memcpy(at, &text_size, sizeof text_size);
            memcpy(at + sizeof text_size, text.data, text_size);
            at += sizeof text_size + text_size;
        }
        error = put(w, KPTI_KPT_GPU_TEXTS, first, last - first + 1, bytes, size);
        if (!error) written->texts = last;
        kpti_heap_give(&log->heap, bytes, size);
    }
    return error;
}

static int put_nodes(kpti_kpt_writer *w, const kpti_gpu_log *log, kpti_gpu_written *written)
{
    enum { MAX = RECORD_BYTES / sizeof(kpti_gpu_node) };
    int error = 0;
    while (!error && written->nodes < log->node_count) {
        const uint32_t left = log->node_count - written->nodes;
        const uint32_t count = left < MAX ? left : MAX;
        error = put(w, KPTI_KPT_GPU_NODES, written->nodes + 1, count,
                    &log->nodes[written->nodes + 1], count * sizeof *log->nodes);
        if (!error) written->nodes += count;
    }
    return error;
}

/* Returns the number of a text of the log, or 0 if it is empty. */
static uint32_t number_of(const kpti_gpu_log *log, kpt_str text)
{
    for (uint32_t i = 1; text.size && i <= log->texts.texts.count; i++)
        if (kpti_gpu_text(log, i).data == text.data) return i;
    return 0;
}

static int put_devices(kpti_kpt_writer *w, const kpti_gpu_log *log, kpti_gpu_written *written)
{
    int error = 0;
    if (written->changes == log->changes) return 0;
    for (uint32_t i = 0; !error && i < log->device_count; i++) {
        const kpt_gpu_device *d = &log->devices[i];
        const kpti_kpt_gpu_device device = {d->index,
                                            number_of(log, d->name),
                                            d->memory_bytes,
                                            d->multiprocessors,
                                            d->compute_major,
                                            d->compute_minor,
                                            d->warp_size,
                                            d->max_threads_per_block,
                                            d->max_threads_per_multiprocessor,
                                            d->registers_per_multiprocessor,
                                            d->shared_bytes_per_multiprocessor,
                                            d->clock_khz,
                                            0};
        error = put(w, KPTI_KPT_GPU_DEVICES, 0, 1, &device, sizeof device);
    }
    for (uint32_t i = 0; !error && i < log->name_count; i++) {
        const kpti_kpt_gpu_name name = {log->names[i].what, log->names[i].id,
                                        number_of(log, log->names[i].name), 0};
        error = put(w, KPTI_KPT_GPU_NAMES, 0, 1, &name, sizeof name);
    }
    if (!error) written->changes = log->changes;
    return error;
}

uint64_t kpti_gpu_put(kpti_kpt_writer *w, const kpti_gpu_log *log, kpti_gpu_written *written)
{
    uint64_t lost = 0;
    if (put_texts(w, log, written) || put_nodes(w, log, written) || put_devices(w, log, written))
        return log->events; /* the events would refer to missing texts */
    for (const kpti_gpu_block *b = log->first; b; b = b->next)
        if (put(w, KPTI_KPT_GPU_EVENTS, 0, b->count, b->bytes, b->size)) lost += b->count;
    return lost;
}

void kpti_gpu_put_counts(kpti_kpt_writer *w, const kpti_gpu_log *log)
{
    (void)put(w, KPTI_KPT_GPU_COUNTS, 0, 1, &log->counts, sizeof log->counts);
}
