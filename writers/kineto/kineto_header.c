#include "writers/kineto/kineto_header.h"

#include "writers/encode/json_scan.h"
#include "writers/encode/json_text.h"

/* A line, from its first character to the comma at its end. */
typedef struct line {
    const char *begin;
    const char *end;  /* the comma */
    const char *next; /* after the newline */
} line;

static int begins_with(const char *at, const char *end, const char *text)
{
    const size_t size = strlen(text);
    return (size_t)(end - at) >= size && memcmp(at, text, size) == 0;
}

/* Returns the position after the bracket of the list of events, or NULL. Kineto writes the base time on the
 * line before. */
static const char *find_list(const char *at, const char *end)
{
    static const char list[] = "\"traceEvents\": [";
    int is_behind_base = 0;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = kpti_json_skip_space(at, end);
        if (is_behind_base && begins_with(at, end, list)) return at + sizeof list - 1;
        is_behind_base = begins_with(at, end, "\"baseTimeNanoseconds\": ");
        if (!newline) return NULL;
        at = newline >= at ? newline + 1 : at;
    }
    return NULL;
}

/* Finds the line that begins at AT. Returns whether it begins with a quote and ends with a comma. */
static int find_line(const char *at, const char *end, line *out)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline || *at != '"') return 0;
    *out = (line){at, newline, newline + 1};
    while (out->end > at && kpti_json_skip_space(out->end - 1, out->end) == out->end)
        out->end--;
    return --out->end > at && *out->end == ',';
}

/* --- text, written to a large enough buffer --------------------------------------------------- */

/* Writes a value that was meant to be a string, without its quotes. Each quote in it had a backslash before it,
 * which Kineto has replaced by a slash. */
static char *put_string(char *out, const char *at, const char *end)
{
    const char *run = at;
    for (; at + 1 < end; at++) {
        if ((*at != '/' && *at != '\\') || at[1] != '"') continue;
        out = kpti_json_escape(out, run, (size_t)(at - run));
        run = ++at; /* continue with the quote */
    }
    return kpti_json_escape(out, run, (size_t)(end - run));
}

/* Writes a value, with the backslashes before quotes restored. Returns NULL if the result is not valid JSON. */
static char *put_value(char *out, const char *at, const char *end)
{
    char *begin = out;
    for (; at < end; at++)
        *out++ = (char)(*at == '/' && at + 1 < end && at[1] == '"' ? '\\' : *at);
    return kpti_json_skip_value(begin, out) == out ? out : NULL;
}

/* Writes a repaired line. Returns NULL if the line has no key. */
static char *put_mended(char *out, const line *l)
{
    static const char separator[] = "\": ";
    const char *key_end =
        memmem(l->begin + 1, (size_t)(l->end - l->begin - 1), separator, sizeof separator - 1);
    const char *value = key_end ? key_end + sizeof separator - 1 : NULL;
    char *behind;
    if (!value) return NULL;
    *out++ = '"';
    out = put_string(out, l->begin + 1, key_end);
    out = KPTI_PUT(out, separator);
    if (l->end - value >= 2 && *value == '"' && l->end[-1] == '"') {
        *out++ = '"';
        out = put_string(out, value + 1, l->end - 1);
        *out++ = '"';
    } else if ((behind = put_value(out, value, l->end)) != NULL) {
        out = behind;
    } else {
        *out++ = '"';
        out = kpti_json_escape(out, value, (size_t)(l->end - value));
        *out++ = '"';
    }
    return KPTI_PUT(out, ",\n");
}

/* --- the head --------------------------------------------------------------------------------- */

/* Skips a member that is valid JSON, and the comma and newline after it. Returns NULL if it is not valid. */
static const char *skip_whole_member(const char *at, const char *end)
{
    kpti_json_member member;
    at = kpti_json_skip_member(at, end, &member);
    at = at ? kpti_json_skip_sign(at, end, ',') : NULL;
    while (at && at < end && (*at == ' ' || *at == '\r'))
        at++;
    return at && at < end && *at == '\n' ? at + 1 : NULL;
}

/* Writes the head from AT, after its bracket, to LIST. Returns NULL if the head does not have this layout. */
static char *put_head(char *out, const char *at, const char *list)
{
    for (;;) {
        line broken;
        const char *key = kpti_json_skip_space(at, list);
        const char *next = skip_whole_member(key, list);
        out = kpti_put_bytes(out, at, (size_t)(key - at));
        if (next)
            out = kpti_put_bytes(out, key, (size_t)(next - key));
        else if (begins_with(key, list, "\"traceEvents\": ["))
            return kpti_put_bytes(out, key, (size_t)(list - key));
        else if (find_line(key, list, &broken) && (out = put_mended(out, &broken)) != NULL)
            next = broken.next;
        else
            return NULL;
        at = next;
    }
}

size_t kpti_kineto_head_mend(kpti_kineto_head *head, const kpti_heap *heap, const char *at,
                             const char *end)
{
    const char *list = find_list(at, end);
    const char *inside = list ? kpti_json_skip_sign(at, list, '{') : NULL;
    const size_t size = list ? (size_t)(list - at) : 0;
    char *out;
    *head = (kpti_kineto_head){NULL, 0, 0};
    if (!inside) return 0;
    head->capacity = size * KPTI_JSON_MAX_GROWTH + KPTI_JSON_MAX_NUMBER;
    head->text = kpti_heap_take(heap, head->capacity);
    if (!head->text) return 0;
    out = kpti_put_bytes(head->text, at, (size_t)(inside - at));
    out = put_head(out, inside, list);
    if (!out) {
        kpti_kineto_head_free(head, heap);
        return 0;
    }
    head->size = (size_t)(out - head->text);
    return size;
}

void kpti_kineto_head_free(kpti_kineto_head *head, const kpti_heap *heap)
{
    kpti_heap_give(heap, head->text, head->capacity);
    *head = (kpti_kineto_head){NULL, 0, 0};
}
