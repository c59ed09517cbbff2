#include "imports/trace_event.h"

#include <stdlib.h>

#include "writers/encode/json_scan.h"

/* Digits of whole microseconds: 10^15 µs are 31 years, and Unix time in µs has 16 digits. */
enum { MAX_DIGITS = 18, MAX_NUMBER = 64 };
static const int64_t most_us = INT64_MAX / 4000;

static kpt_str view(const char *at, const char *end)
{
    return (kpt_str){at, (uint64_t)(end - at)};
}

static kpt_str inside(const kpti_json_member *m)
{
    if (*m->value != '"') return view(m->value, m->value_end);
    return view(m->value + 1, m->value_end - 1);
}

/* A number with an exponent, or with too many digits. */
static int read_slowly(const char *at, const char *end, int64_t *ns)
{
    char text[MAX_NUMBER];
    const size_t size = (size_t)(end - at);
    double us;
    if (!size || size >= sizeof text) return 0;
    memcpy(text, at, size);
    text[size] = '\0';
    us = strtod(text, NULL);
    if (!(us > (double)-most_us && us < (double)most_us)) return 0;
    *ns = (int64_t)(us * 1000.0);
    return 1;
}

int kpti_trace_time_read(const char *at, const char *end, int64_t *ns)
{
    const char *const begin = at;
    const int is_negative = at < end && *at == '-';
    int64_t value = 0;
    int digits = 0;
    if (at < end && (*at == '"' || *at == 't' || *at == 'f' || *at == 'n')) return 0;
    at += is_negative;
    for (; at < end && *at >= '0' && *at <= '9'; at++, digits++)
        if (digits < MAX_DIGITS) value = value * 10 + (*at - '0');
    if (!digits || digits > MAX_DIGITS || value >= most_us) return read_slowly(begin, end, ns);
    value *= 1000;
    if (at < end && *at == '.') {
        at++;
        for (int64_t unit = 100; at < end && *at >= '0' && *at <= '9'; at++, unit /= 10)
            value += (*at - '0') * unit;
    }
    if (at != end) return read_slowly(begin, end, ns);
    *ns = is_negative ? -value : value;
    return 1;
}

static void take_member(const kpti_json_member *m, kpti_trace_event *out)
{
    const char *const key = m->key;
    const char *const end = m->key_end;
    if (kpti_json_is(key, end, "ph")) {
        const kpt_str phase = inside(m);
        if (phase.size == 1) out->phase = phase.data[0];
    } else if (kpti_json_is(key, end, "name")) {
        out->name = inside(m);
    } else if (kpti_json_is(key, end, "cat")) {
        out->category = inside(m);
    } else if (kpti_json_is(key, end, "pid")) {
        out->pid = inside(m);
    } else if (kpti_json_is(key, end, "tid")) {
        out->tid = inside(m);
    } else if (kpti_json_is(key, end, "ts")) {
        out->has_start = kpti_trace_time_read(m->value, m->value_end, &out->start_ns);
    } else if (kpti_json_is(key, end, "dur")) {
        if (!kpti_trace_time_read(m->value, m->value_end, &out->duration_ns) ||
            out->duration_ns < 0)
            out->duration_ns = 0;
    } else if (kpti_json_is(key, end, "args") && *m->value == '{') {
        out->args = view(m->value, m->value_end);
    }
}

const char *kpti_trace_event_read(const char *at, const char *end, kpti_trace_event *out)
{
    const char *empty;
    memset(out, 0, sizeof *out);
    at = kpti_json_skip_sign(at, end, '{');
    if (!at) return NULL;
    empty = kpti_json_skip_sign(at, end, '}');
    if (empty) return empty;
    for (;;) {
        kpti_json_member member;
        const char *next = kpti_json_skip_member(at, end, &member);
        if (!next) return NULL;
        take_member(&member, out);
        at = kpti_json_skip_sign(next, end, ',');
        if (!at) return kpti_json_skip_sign(next, end, '}');
    }
}

kpt_str kpti_trace_member(kpt_str text, const char *key)
{
    const char *const end = text.data + text.size;
    const char *at = text.size ? kpti_json_skip_sign(text.data, end, '{') : NULL;
    while (at) {
        kpti_json_member member;
        const char *next = kpti_json_skip_member(at, end, &member);
        if (!next) break;
        if (kpti_json_is(member.key, member.key_end, key))
            return view(member.value, member.value_end);
        at = kpti_json_skip_sign(next, end, ',');
    }
    return (kpt_str){NULL, 0};
}
