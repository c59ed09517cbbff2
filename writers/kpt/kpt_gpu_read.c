#include "writers/kpt/kpt_gpu_read.h"

#include "writers/kpt/kpt_format.h"

static kpt_status take_texts(kpti_gpu_log *log, kpti_kpt_gpu head, const char *at, uint64_t size)
{
    for (uint32_t i = 0; i < head.count; i++) {
        uint32_t text_size;
        uint32_t number;
        kpt_status status;
        if (size < sizeof text_size) return KPT_E_INVALID;
        memcpy(&text_size, at, sizeof text_size);
        at += sizeof text_size;
        size -= sizeof text_size;
        if (text_size > size) return KPT_E_INVALID;
        status = kpti_gpu_log_text(log, (kpt_str){at, text_size}, &number);
        if (status != KPT_OK) return status;
        if (number != head.first + i) return KPT_E_INVALID;
        at += text_size;
        size -= text_size;
    }
    return size ? KPT_E_INVALID : KPT_OK;
}

static kpt_status take_node(kpti_gpu_log *log, const char *at, uint32_t expected)
{
    kpti_gpu_node node;
    uint32_t number;
    kpt_status status;
    memcpy(&node, at, sizeof node);
    if (node.caller >= expected || node.function > log->texts.texts.count ||
        node.file > log->texts.texts.count)
        return KPT_E_INVALID;
    status = kpti_gpu_log_node(log, &node, &number);
    return status == KPT_OK && number != expected ? KPT_E_INVALID : status;
}

static kpt_status take_device(kpti_gpu_log *log, const char *at, uint32_t ignored)
{
    kpti_kpt_gpu_device d;
    kpt_gpu_device device;
    (void)ignored;
    memcpy(&d, at, sizeof d);
    device = (kpt_gpu_device){d.index,
                              d.multiprocessors,
                              kpti_gpu_text(log, d.name),
                              d.memory_bytes,
                              d.compute_major,
                              d.compute_minor,
                              d.warp_size,
                              d.max_threads_per_block,
                              d.max_threads_per_multiprocessor,
                              d.registers_per_multiprocessor,
                              d.shared_bytes_per_multiprocessor,
                              d.clock_khz};
    return kpti_gpu_log_device(log, &device);
}

static kpt_status take_name(kpti_gpu_log *log, const char *at, uint32_t ignored)
{
    kpti_kpt_gpu_name n;
    kpt_gpu_name name;
    (void)ignored;
    memcpy(&n, at, sizeof n);
    name = (kpt_gpu_name){n.what, n.id, kpti_gpu_text(log, n.name)};
    return kpti_gpu_log_name(log, &name);
}

static kpt_status take_counts(kpti_gpu_log *log, const char *at, uint32_t ignored)
{
    (void)ignored;
    memcpy(&log->counts, at, sizeof log->counts);
    return KPT_OK;
}

/* Items of fixed size, by KPTI_KPT_GPU_*. */
static const struct row {
    size_t bytes;
    kpt_status (*take)(kpti_gpu_log *log, const char *at, uint32_t number);
} rows[] = {[KPTI_KPT_GPU_NODES] = {sizeof(kpti_gpu_node), take_node},
            [KPTI_KPT_GPU_DEVICES] = {sizeof(kpti_kpt_gpu_device), take_device},
            [KPTI_KPT_GPU_NAMES] = {sizeof(kpti_kpt_gpu_name), take_name},
            [KPTI_KPT_GPU_COUNTS] = {sizeof(kpti_gpu_counts), take_counts}};
enum { ROWS = sizeof rows / sizeof rows[0] };

kpt_status kpti_gpu_take(kpti_gpu_log *log, const char *bytes, uint64_t size)
{
    kpti_kpt_gpu head;
    kpt_status status = KPT_OK;
    if (size < sizeof head) return KPT_E_INVALID;
    memcpy(&head, bytes, sizeof head);
    bytes += sizeof head;
    size -= sizeof head;
    if (head.what == KPTI_KPT_GPU_TEXTS) return take_texts(log, head, bytes, size);
    if (head.what == KPTI_KPT_GPU_EVENTS)
        return kpti_gpu_log_borrow(log, (const unsigned char *)bytes, size, head.count);
    if (head.what >= ROWS || !rows[head.what].take) return KPT_OK; /* written by a newer version */
    if (size != head.count * (uint64_t)rows[head.what].bytes) return KPT_E_INVALID;
    for (uint32_t i = 0; i < head.count && status == KPT_OK; i++)
        status = rows[head.what].take(log, bytes + i * rows[head.what].bytes, head.first + i);
    return status;
}
