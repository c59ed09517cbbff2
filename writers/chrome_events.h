/* chrome_events.h: calls as Chrome trace events, with the fields that Kineto gives to Python calls.
 * Names and threads are fragments, made once; a call is then a few copies and five numbers,
 * formatted in integers. Times are microseconds with three decimals since base_ns. */
#ifndef KPTI_CHROME_EVENTS_H
#define KPTI_CHROME_EVENTS_H

#include "fragments.h"
#include "json_text.h"
#include "kpt_activity.h"
#include "kpt_text.h"
#include "out_file.h"
#include "records.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longer names are cut: no viewer shows them, and a fragment must fit into the buffer. */
enum { KPTI_CHROME_MOST_NAME = 16 * 1024 };
/* All of an activity but its name and its further arguments: fixed text, numbers, the thread. */
enum { KPTI_CHROME_MOST_REST = 1024 };
/* And those. */
enum { KPTI_CHROME_MOST_MORE = 256 * 1024 };

static inline char *kpti_put_bytes(char *at, const char *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

/* Copies a literal; the compiler knows its length. */
#define KPTI_PUT(at, literal) kpti_put_bytes((at), (literal), sizeof(literal) - 1)

typedef struct kpti_chrome_events {
    kpti_out_file *out;
    int64_t base_ns;
    uint64_t next_index; /* "Ev Idx" of the next one */
} kpti_chrome_events;

/* For numbers that never came, which no right plugin delivers. */
extern const kpti_fragment kpti_chrome_no_name;
extern const kpti_fragment kpti_chrome_no_thread;

/* Writes a call, with a comma in front. MORE goes into its arguments: ",\"key\":value" or nothing. */
void kpti_chrome_put(kpti_chrome_events *events, const kpt_activity *activity, kpti_fragment name,
                     kpti_fragment thread, kpti_fragment more);

/* Makes TEXT the name NUMBER, escaped. KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_chrome_add_name(kpti_fragments *names, uint32_t number, kpt_str text,
                                uint32_t note);

/* Makes a process and thread the thread NUMBER. */
kpt_status kpti_chrome_add_thread(kpti_fragments *threads, uint32_t number, uint64_t pid,
                                  uint64_t tid);

/* Most bytes of TEXT as the inside of a JSON string. */
static inline size_t kpti_chrome_room(kpt_str text)
{
    const size_t most = KPTI_CHROME_MOST_NAME;
    return (text.size < most ? (size_t)text.size : most) * KPTI_JSON_MOST_GROWTH;
}

/* TEXT as the inside of a JSON string, cut if it is too long for a name. */
char *kpti_chrome_escape(char *out, kpt_str text);

/* As records.h has them. */
#define kpti_chrome_can_read kpti_records_can_read
#define kpti_chrome_record   kpti_record

#ifdef __cplusplus
}
#endif
#endif
