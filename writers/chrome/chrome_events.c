#include "writers/chrome/chrome_events.h"

_Static_assert(2 * KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH + KPTI_CHROME_MAX_REST +
                       KPTI_CHROME_MAX_MORE <
                   KPTI_OUT_BUFFER_BYTES,
               "an activity fits into the buffer, also one named by a file and a function");

static const char no_name_text[KPTI_FRAGMENT_STEP] = "unknown";
static const char no_thread_text[2 * KPTI_FRAGMENT_STEP] = "\",\"pid\":0,\"tid\":0,\"ts\":";
const kpti_fragment kpti_chrome_no_name = {no_name_text, 7, 0};
const kpti_fragment kpti_chrome_no_thread = {no_thread_text, 23, 0};

void kpti_chrome_put_compact(kpti_chrome_events *events, const kpt_activity *a, kpti_fragment name,
                             kpti_fragment thread, kpti_fragment more)
{
    char *at = kpti_out_reserve(events->out, (size_t)name.size + more.size + KPTI_CHROME_MAX_REST);
    at = KPTI_PUT(at, ",\n{\"ph\":\"X\",\"name\":\"");
    at = kpti_fragment_put(at, name);
    at = kpti_fragment_put(at, thread);
    at = kpti_chrome_put_start(at, events, a->start_ns);
    at = kpti_put_us_between(KPTI_PUT(at, ",\"dur\":"), a->start_ns, a->end_ns);
    if (more.size) {
        at = KPTI_PUT(at, ",\"args\":{");
        memcpy(at, more.text + 1, more.size - 1); /* without its comma */
        at = KPTI_PUT(at + more.size - 1, "}");
    }
    kpti_out_wrote(events->out, KPTI_PUT(at, "}"));
}

/* --- names and threads ------------------------------------------------------------------------ */

kpt_str kpti_chrome_short_name(const kpt_name *name)
{
    const kpt_str shown = kpti_shown_name(name);
    size_t skip = name->file.size;
    int components = 0;
    if (skip > shown.size || !skip || memcmp(shown.data, name->file.data, skip) != 0) return shown;
    while (skip && components < 2)
        if (name->file.data[--skip] == '/') components++;
    if (components == 2) skip++;
    return (kpt_str){shown.data + skip, shown.size - skip};
}

char *kpti_chrome_escape(char *out, kpt_str text)
{
    size_t size = text.size < KPTI_CHROME_MAX_NAME ? (size_t)text.size : KPTI_CHROME_MAX_NAME;
    return kpti_json_escape(out, text.data, text.data ? size : 0);
}

kpt_status kpti_chrome_add_name(kpti_fragments *names, uint32_t number, kpt_str text, uint32_t note)
{
    char *begin = kpti_fragments_reserve(names, kpti_chrome_reserve(text) + 1);
    if (!begin) return KPT_E_MEMORY;
    return kpti_fragments_set(names, number, begin,
                              (size_t)(kpti_chrome_escape(begin, text) - begin), note);
}

/* The fragment is the text between the name's end and the start time. Its note is the thread id. */
kpt_status kpti_chrome_add_thread(kpti_fragments *threads, uint32_t number, uint64_t pid,
                                  uint64_t tid)
{
    char *begin = kpti_fragments_reserve(threads, KPTI_CHROME_MAX_REST);
    char *at = begin;
    if (!begin) return KPT_E_MEMORY;
    at = kpti_put_u64(KPTI_PUT(at, "\",\"pid\":"), pid);
    at = kpti_put_u64(KPTI_PUT(at, ",\"tid\":"), tid);
    at = KPTI_PUT(at, ",\"ts\":");
    return kpti_fragments_set(threads, number, begin, (size_t)(at - begin), (uint32_t)tid);
}
