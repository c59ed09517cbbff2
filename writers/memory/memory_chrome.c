#include "writers/memory/memory_chrome.h"

#include <stdio.h>

#include "abi/kpt_text.h"
#include "writers/encode/json_text.h"

/* Most bytes of an event without its name, numbers included. */
enum { EVENT_ROOM = 1024 };

static char *put(char *at, const char *text)
{
    return stpcpy(at, text);
}

static char *put_time(char *at, const kpti_memory_history *h, const kpti_memory_entry *e)
{
    at = put(at, ",\"pid\":");
    at = kpti_put_u64(at, h->pid);
    at = put(at, ",\"tid\":");
    at = kpti_put_u64(at, e->os_tid);
    at = put(at, ",\"ts\":");
    return kpti_put_us(at, e->time_ns > 0 ? (uint64_t)e->time_ns : 0);
}

static char *put_signed(char *at, int32_t value)
{
    if (value < 0) at = put(at, "-");
    return kpti_put_u64(at, (uint64_t)(value < 0 ? -(int64_t)value : (int64_t)value));
}

/* Writes an instant event as Kineto does. */
static char *put_instant(char *at, const kpti_memory_history *h, const kpti_memory_entry *e,
                         uint64_t total)
{
    const kpti_memory_device *device = &h->names.devices[e->device];
    at = put(at, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\"");
    at = put_time(at, h, e);
    at = put(at, ",\"args\":{\"Addr\":");
    at = kpti_put_u64(at, e->address);
    at = put(at, e->kind & KPTI_MEMORY_FREE && e->size ? ",\"Bytes\":-" : ",\"Bytes\":");
    at = kpti_put_u64(at, e->size);
    at = put(at, ",\"Total Allocated\":");
    at = kpti_put_u64(at, total);
    at = put(at, ",\"Total Reserved\":0,\"Device Type\":");
    at = put_signed(at, device->type);
    at = put(at, ",\"Device Id\":");
    at = put_signed(at, device->index);
    at = put(at, ",\"Ev Idx\":");
    at = kpti_put_u64(at, e->index);
    at = put(at, "}");
    if (e->stack) {
        at = put(at, ",\"sf\":");
        at = kpti_put_u64(at, e->stack);
    }
    return put(at, "},\n");
}

static char *put_counter(char *at, const kpti_memory_history *h, const kpti_memory_entry *e,
                         uint64_t bytes)
{
    const char *device = h->names.devices[e->device].name;
    at = put(at, "{\"ph\":\"C\",\"name\":\"");
    at = kpti_json_escape(at, device, strlen(device));
    at = put(at, "\"");
    at = put_time(at, h, e);
    at = put(at, ",\"args\":{\"bytes\":");
    at = kpti_put_u64(at, bytes);
    return put(at, "}},\n");
}

static int put_events(kpti_memory_history *h, kpti_out_file *out, kpti_memory_curves *curves)
{
    kpti_memory_entry e;
    kpti_memory_history_first(h);
    while (kpti_memory_history_next(h, &e)) {
        char *at = kpti_out_reserve(out, EVENT_ROOM);
        kpti_memory_curves_take(curves, h, &e);
        at = put_instant(at, h, &e, curves->of_space[e.space]);
        at = put_counter(at, h, &e, curves->of_device[e.device]);
        kpti_out_wrote(out, at);
    }
    return !h->failed;
}

/* Writes frames in Chrome's format: each with the number of its caller. */
static void put_frames(const kpti_memory_names *names, kpti_out_file *out)
{
    enum { MAX_TEXT = 4096 };
    for (uint64_t i = 0; i < names->node_count; i++) {
        const kpti_memory_node *node = &names->nodes[i];
        const kpti_memory_symbol *s = &names->symbols[node->symbol];
        char *at = kpti_out_reserve(out, EVENT_ROOM + MAX_TEXT * 2 * KPTI_JSON_MAX_GROWTH);
        at = put(at, i ? ",\n\"" : "\"");
        at = kpti_put_u64(at, i + 1);
        at = put(at, "\":{\"name\":\"");
        at = kpti_json_escape(at, s->file.data, s->file.size < MAX_TEXT ? s->file.size : MAX_TEXT);
        at = put(at, "(");
        at = kpti_put_u64(at, s->line);
        at = put(at, "): ");
        at = kpti_json_escape(at, s->name.data, s->name.size < MAX_TEXT ? s->name.size : MAX_TEXT);
        at = put(at, "\"");
        if (node->parent) {
            at = put(at, ",\"parent\":");
            at = kpti_put_u64(at, node->parent);
        }
        at = put(at, "}");
        kpti_out_wrote(out, at);
    }
}

int kpti_memory_chrome_write(kpti_memory_history *history, kpti_out_file *out)
{
    kpti_memory_curves curves;
    const char head[] = "{\"schemaVersion\":1,\"traceEvents\":[\n";
    char middle[160];
    int whole;
    const int middle_size = snprintf(middle, sizeof middle,
                                     "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%llu,"
                                     "\"args\":{\"name\":\"memory\"}}\n],\n\"stackFrames\":{",
                                     (unsigned long long)history->pid);
    if (!kpti_memory_curves_make(&curves, history)) return 0;
    kpti_out_put(out, head, sizeof head - 1);
    whole = put_events(history, out, &curves);
    kpti_out_put(out, middle, (size_t)middle_size);
    put_frames(&history->names, out);
    kpti_out_put(out, "}}\n", 3);
    kpti_memory_curves_free(&curves);
    return whole;
}
