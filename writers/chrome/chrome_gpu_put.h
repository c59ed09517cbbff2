/* chrome_gpu_put.h: how the parts of a GPU's activities are written as Chrome JSON. Only chrome_gpu.c and
 * chrome_gpu_tail.c use it. */
#ifndef KPTI_WRITERS_CHROME_CHROME_GPU_PUT_H
#define KPTI_WRITERS_CHROME_CHROME_GPU_PUT_H

#include "writers/chrome/chrome_events.h"
#include "writers/format/format.h"

static inline void kpti_chrome_gpu_put_text(kpti_writer *w, const char *text)
{
    kpti_out_put(&w->out, text, strlen(text));
}

/* Reserves space for one event. */
static inline char *kpti_chrome_gpu_reserve(kpti_writer *w)
{
    enum { TEXTS = 4 };
    _Static_assert(TEXTS * KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH < KPTI_OUT_BUFFER_BYTES,
                   "an event with a name, a frame and a forward function fits");
    return kpti_out_reserve(&w->out, KPTI_OUT_BUFFER_BYTES);
}

static inline char *kpti_chrome_put_number(char *at, const char *key, uint64_t value)
{
    return kpti_put_u64(stpcpy(at, key), value);
}

/* "file.py(12): f". */
static inline char *kpti_chrome_put_frame(char *at, const kpti_gpu_log *log,
                                          const kpti_gpu_node *node)
{
    at = kpti_chrome_escape(at, kpti_gpu_text(log, node->file));
    at = KPTI_PUT(kpti_put_u64(KPTI_PUT(at, "("), node->line), "): ");
    return kpti_chrome_escape(at, kpti_gpu_text(log, node->function));
}

#endif
