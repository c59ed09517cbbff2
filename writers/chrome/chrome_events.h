/* chrome_events.h: calls as Chrome trace events, with the fields that Kineto writes for Python calls. Names and
 * threads are fragments, made once. A call is then a few copies and five numbers, formatted with integer
 * arithmetic. Times are microseconds with three decimals since base_ns. */
#ifndef KPTI_WRITERS_CHROME_CHROME_EVENTS_H
#define KPTI_WRITERS_CHROME_CHROME_EVENTS_H

#include "abi/kpt_activity.h"
#include "abi/kpt_text.h"
#include "core/base/batch_records.h"
#include "writers/encode/escaped_strings.h"
#include "writers/encode/json_text.h"
#include "writers/io/output_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longer names are cut: no viewer displays them, and a fragment must fit into the buffer. */
enum { KPTI_CHROME_MAX_NAME = 16 * 1024 };
/* Most bytes of an activity without its name and its additional arguments: fixed text, numbers, the thread. */
enum { KPTI_CHROME_MAX_REST = 1024 };
/* Most bytes of the additional arguments. */
enum { KPTI_CHROME_MAX_MORE = 256 * 1024 };

typedef struct kpti_chrome_events {
    kpti_out_file *out;
    int64_t base_ns;
    uint64_t next_index; /* "Ev Idx" of the next event */
    /* The last numbers; those of the next call are near them. */
    kpti_near start_ns, id, parent_id, index;
} kpti_chrome_events;

/* For name and thread numbers that were not delivered, which no correct plugin refers to. */
extern const kpti_fragment kpti_chrome_no_name;
extern const kpti_fragment kpti_chrome_no_thread;

static inline char *kpti_chrome_put_start(char *at, kpti_chrome_events *events, int64_t ns)
{
    if (ns < events->base_ns) return kpti_put_us_between(at, events->base_ns, ns);
    return kpti_put_us_near(at, (uint64_t)ns - (uint64_t)events->base_ns, &events->start_ns);
}

/* Writes a call, with a comma before it: about 200 bytes in at most 80 ns. MORE is added to its arguments:
 * ",\"key\":value" or nothing. The fields of A are read first, since the compiler must assume that the output
 * overlaps A. */
static inline void kpti_chrome_put(kpti_chrome_events *events, const kpt_activity *a,
                                   kpti_fragment name, kpti_fragment thread, kpti_fragment more)
{
    const int64_t start_ns = a->start_ns;
    const int64_t end_ns = a->end_ns;
    const uint64_t parent_id = a->parent_id;
    const uint64_t id = a->id;
    const uint64_t index = events->next_index++;
    char *at = kpti_out_reserve(events->out, (size_t)name.size + more.size + KPTI_CHROME_MAX_REST);
    at = KPTI_PUT(at, ",\n{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"");
    at = kpti_fragment_put(at, name);
    at = kpti_fragment_put(at, thread);
    at = kpti_chrome_put_start(at, events, start_ns);
    at = kpti_put_us_between(KPTI_PUT(at, ",\"dur\":"), start_ns, end_ns);
    at = KPTI_PUT(at, ",\"args\":{\"Python parent id\":");
    at = parent_id ? kpti_put_near(at, parent_id, &events->parent_id) : KPTI_PUT(at, "null");
    at = kpti_put_near(KPTI_PUT(at, ",\"Python id\":"), id, &events->id);
    at = kpti_put_near(KPTI_PUT(at, ",\"Ev Idx\":"), index, &events->index);
    if (more.size) {
        memcpy(at, more.text, more.size);
        at += more.size;
    }
    kpti_out_wrote(events->out, KPTI_PUT(at, "}}"));
}

/* Writes a call without a category and ids, with a comma before it: about 90 bytes. Viewers nest calls by their times. MORE
 * is its arguments as above, or empty. */
void kpti_chrome_put_compact(kpti_chrome_events *events, const kpt_activity *a, kpti_fragment name,
                             kpti_fragment thread, kpti_fragment more);

/* Returns the name of a call with its file's last two components only: "json/encoder.py(12): encode". */
kpt_str kpti_chrome_short_name(const kpt_name *name);

/* Makes TEXT the name NUMBER, escaped. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_chrome_add_name(kpti_fragments *names, uint32_t number, kpt_str text,
                                uint32_t note);

/* Makes PID and TID the thread NUMBER. */
kpt_status kpti_chrome_add_thread(kpti_fragments *threads, uint32_t number, uint64_t pid,
                                  uint64_t tid);

/* Returns the most bytes that TEXT needs as the inside of a JSON string. */
static inline size_t kpti_chrome_reserve(kpt_str text)
{
    const size_t max = KPTI_CHROME_MAX_NAME;
    return (text.size < max ? (size_t)text.size : max) * KPTI_JSON_MAX_GROWTH;
}

/* Writes TEXT as the inside of a JSON string, cut if it is too long for a name. Returns its end. */
char *kpti_chrome_escape(char *out, kpt_str text);

#ifdef __cplusplus
}
#endif
#endif
