#include "chrome_events.h"

_Static_assert(2 * KPTI_CHROME_MOST_NAME * KPTI_JSON_MOST_GROWTH + KPTI_CHROME_MOST_REST +
                       KPTI_CHROME_MOST_MORE <
                   KPTI_OUT_BUFFER_BYTES,
               "an activity fits into the buffer, also one named by a file and a function");

/* --- the hot path: one activity, about 200 bytes, in at most 80 ns ---------------------------- */

static const char no_name_text[KPTI_FRAGMENT_STEP] = "unknown";
static const char no_thread_text[2 * KPTI_FRAGMENT_STEP] = "\",\"pid\":0,\"tid\":0,\"ts\":";
const kpti_fragment kpti_chrome_no_name = {no_name_text, 7, 0};
const kpti_fragment kpti_chrome_no_thread = {no_thread_text, 23, 0};

void kpti_chrome_put(kpti_chrome_events *events, const kpt_activity *a, kpti_fragment name,
                     kpti_fragment thread, kpti_fragment more)
{
    char *at = kpti_out_room(events->out, (size_t)name.size + more.size + KPTI_CHROME_MOST_REST);
    at = KPTI_PUT(at, ",\n{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"");
    at = kpti_fragment_put(at, name);
    at = kpti_fragment_put(at, thread);
    at = kpti_put_us_between(at, events->base_ns, a->start_ns);
    at = kpti_put_us_between(KPTI_PUT(at, ",\"dur\":"), a->start_ns, a->end_ns);
    at = KPTI_PUT(at, ",\"args\":{\"Python parent id\":");
    at = a->parent_id ? kpti_put_u64(at, a->parent_id) : KPTI_PUT(at, "null");
    at = kpti_put_u64(KPTI_PUT(at, ",\"Python id\":"), a->id);
    at = kpti_put_u64(KPTI_PUT(at, ",\"Ev Idx\":"), events->next_index++);
    if (more.size) {
        memcpy(at, more.text, more.size);
        at += more.size;
    }
    kpti_out_wrote(events->out, KPTI_PUT(at, "}}"));
}

/* --- names and threads ------------------------------------------------------------------------ */

char *kpti_chrome_escape(char *out, kpt_str text)
{
    size_t size = text.size < KPTI_CHROME_MOST_NAME ? (size_t)text.size : KPTI_CHROME_MOST_NAME;
    return kpti_json_escape(out, text.data, text.data ? size : 0);
}

kpt_status kpti_chrome_add_name(kpti_fragments *names, uint32_t number, kpt_str text, uint32_t note)
{
    char *begin = kpti_fragments_room(names, kpti_chrome_room(text) + 1);
    if (!begin) return KPT_E_MEMORY;
    return kpti_fragments_set(names, number, begin,
                              (size_t)(kpti_chrome_escape(begin, text) - begin), note);
}

/* From the name's end to where the start time goes. */
kpt_status kpti_chrome_add_thread(kpti_fragments *threads, uint32_t number, uint64_t pid,
                                  uint64_t tid)
{
    char *begin = kpti_fragments_room(threads, KPTI_CHROME_MOST_REST);
    char *at = begin;
    if (!begin) return KPT_E_MEMORY;
    at = kpti_put_u64(KPTI_PUT(at, "\",\"pid\":"), pid);
    at = kpti_put_u64(KPTI_PUT(at, ",\"tid\":"), tid);
    at = KPTI_PUT(at, ",\"ts\":");
    return kpti_fragments_set(threads, number, begin, (size_t)(at - begin), 0);
}
