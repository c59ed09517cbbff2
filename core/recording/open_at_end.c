#include "core/recording/open_at_end.h"

#include "core/base/assert.h"
#include "core/base/growable_array.h"
#include "core/recording/operator_event.h"

enum { MISSES = 64 };

/* A failed search: no call that began before the event AT has KEY. Without it, exits of functions that are not open
 * would each walk a deep stack. */
typedef struct miss {
    uint32_t key;
    uint32_t at;
} miss;

typedef struct scan {
    kpti_open_at_end *found;
    const kpti_event *events;
    uint32_t count;
    miss misses[MISSES];
} scan;

/* Returns the index after the event at AT and its details. */
static uint32_t after_details(const scan *s, uint32_t at)
{
    at += kpti_event_is_long(kpti_event_kind(s->events[at])) ? 2 : 1;
    while (at < s->count && kpti_event_is_detail(s->events[at]))
        at += kpti_event_is_long(kpti_event_kind(s->events[at])) ? 2 : 1;
    return at < s->count ? at : s->count;
}

static int push(scan *s, kpti_open_entry entry)
{
    kpti_open_at_end *const f = s->found;
    if (!kpti_array_reserve(&kpti_malloc_heap, &f->open, &f->open_capacity, f->open_count + 1,
                            sizeof *f->open))
        return 0;
    f->open[f->open_count++] = entry;
    return 1;
}

/* Returns the number of a range whose first event is OPEN. */
static uint32_t open_range_number(const scan *s, uint32_t at, uint32_t end)
{
    for (at++; at + 1 < end; at++) {
        const uint32_t kind = kpti_event_kind(s->events[at]);
        if (kind == KPTI_EVENT_WIDE && kpti_event_number(s->events[at]) == KPTI_WIDE_SPAN)
            return (uint32_t)s->events[at + 1] & KPTI_MAX_NUMBER;
        if (kpti_event_is_long(kind)) at++;
    }
    return 0;
}

static int has_text(const scan *s, uint32_t at, uint32_t end)
{
    for (at++; at < end; at++) {
        const uint32_t kind = kpti_event_kind(s->events[at]);
        if (kind == KPTI_EVENT_TEXT) return 1;
        if (kpti_event_is_long(kind)) at++;
    }
    return 0;
}

/* Returns the position of the innermost open call of the function KEY plus 1, or 0 if it is not open. */
static uint64_t find_call(scan *s, uint32_t key, uint32_t now)
{
    miss *const known = &s->misses[key % MISSES];
    const uint32_t oldest = known->key == key ? known->at : 0;
    uint64_t i = s->found->open_count;
    for (; i > 0; i--) {
        const kpti_open_entry *const entry = &s->found->open[i - 1];
        if (entry->at < oldest) break;
        if (!entry->range && entry->key == key) return i;
    }
    *known = (miss){key, now};
    return 0;
}

/* Removes the call at POSITION - 1 and the calls above it. Ranges stay: they may cross calls. */
static void close_calls(kpti_open_at_end *f, uint64_t position)
{
    uint64_t kept = position - 1;
    for (uint64_t i = position; i < f->open_count; i++)
        if (f->open[i].range) f->open[kept++] = f->open[i];
    f->open_count = kept;
}

static void end_range(kpti_open_at_end *f, uint32_t number)
{
    uint64_t i = f->open_count;
    while (i > 0 && !(f->open[i - 1].range && f->open[i - 1].key == number))
        i--;
    if (i == 0) return;
    memmove(&f->open[i - 1], &f->open[i], (f->open_count - i) * sizeof *f->open);
    f->open_count--;
}

/* Takes the event at AT. Returns the index of the next one, or 0 if there is no memory. */
static uint32_t take(scan *s, uint32_t at)
{
    const uint32_t kind = kpti_event_kind(s->events[at]);
    const uint32_t number = kpti_event_number(s->events[at]);
    const uint32_t end = after_details(s, at);
    kpti_open_entry entry = {number, 0, at, end};
    uint64_t position;
    switch (kind) {
    case KPTI_EVENT_OPEN:
        if (number == KPTI_OPEN_SPAN) {
            entry.range = 1;
            entry.key = open_range_number(s, at, end);
        }
        return push(s, entry) ? end : 0;
    case KPTI_EVENT_ENTER:
        return push(s, entry) ? end : 0;
    case KPTI_EVENT_SPAN_BEGIN:
        entry.range = 1;
        return !has_text(s, at, end) || push(s, entry) ? end : 0;
    case KPTI_EVENT_EXIT:
        position = find_call(s, number, at);
        if (position) close_calls(s->found, position);
        break;
    case KPTI_EVENT_SPAN_END:
        end_range(s->found, number);
        break;
    default:
        break;
    }
    return end;
}

static int put(kpti_open_at_end *f, kpti_event event)
{
    if (!kpti_array_reserve(&kpti_malloc_heap, &f->events, &f->capacity, f->count + 1,
                            sizeof *f->events))
        return 0;
    f->events[f->count++] = event;
    return 1;
}

/* Appends the INPUTS event at AT, and, if the TEXT events are elsewhere, those. */
static int put_inputs(const scan *s, uint32_t at)
{
    const uint32_t distance = (uint32_t)s->events[at];
    const uint32_t count = kpti_event_number(s->events[at]);
    int fine = put(s->found, kpti_inputs_make(count, 0));
    kpti_assert(distance <= at);
    for (uint32_t i = 0; fine && distance && i < count; i++)
        fine = put(s->found, s->events[at - distance + i]);
    return fine;
}

/* Appends the OPEN event of ENTRY and its details. */
static int put_entry(const scan *s, const kpti_open_entry *entry)
{
    kpti_open_at_end *const f = s->found;
    const int was_open = kpti_event_kind(s->events[entry->at]) == KPTI_EVENT_OPEN;
    int fine =
        put(f, kpti_event_make(KPTI_EVENT_OPEN, entry->range ? KPTI_OPEN_SPAN : entry->key, 0));
    if (entry->range && !was_open)
        fine = fine && put(f, kpti_event_make(KPTI_EVENT_WIDE, KPTI_WIDE_SPAN, 0)) &&
               put(f, entry->key);
    for (uint32_t i = entry->at + 1; fine && i < entry->end; i++) {
        const uint32_t kind = kpti_event_kind(s->events[i]);
        fine = kind == KPTI_EVENT_INPUTS ? put_inputs(s, i) : put(f, s->events[i]);
        if (fine && kpti_event_is_long(kind) && i + 1 < entry->end) fine = put(f, s->events[++i]);
    }
    return fine;
}

int kpti_open_at_end_find(kpti_open_at_end *found, const kpti_event *events, uint32_t count)
{
    scan s = {.found = found, .events = events, .count = count};
    uint32_t at = 0;
    int fine = 1;
    found->count = found->open_count = 0;
    while (fine && at < count) {
        at = take(&s, at);
        fine = at != 0;
    }
    for (uint64_t i = 0; fine && i < found->open_count; i++)
        fine = put_entry(&s, &found->open[i]);
    if (!fine) found->count = 0;
    return fine;
}

void kpti_open_at_end_free(kpti_open_at_end *found)
{
    free(found->events);
    free(found->open);
    memset(found, 0, sizeof *found);
}
