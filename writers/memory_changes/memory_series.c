#include "writers/memory_changes/memory_series.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"

/* Makes one point of two. The last one may be alone. */
static void join_points(kpti_memory_series *s)
{
    const size_t count = (s->count + 1) / 2;
    for (uint32_t l = 0; l <= KPTI_SERIES_DEVICES; l++) {
        kpti_series_line *line = s->lines[l];
        for (size_t i = 0; line && i < count; i++) {
            const size_t second = i * 2 + 1 < s->count ? i * 2 + 1 : i * 2;
            const double most = line->most[i * 2];
            line->last[i] = line->last[second];
            line->most[i] = most > line->most[second] ? most : line->most[second];
        }
    }
    s->count = (uint32_t)count;
    s->step_ns *= 2;
}

/* Begins the points up to number COUNT - 1, in which nothing has happened yet. */
static void begin_points(kpti_memory_series *s, uint32_t count)
{
    kpti_assert(count <= KPTI_SERIES_POINTS);
    for (uint32_t l = 0; l <= KPTI_SERIES_DEVICES; l++) {
        kpti_series_line *line = s->lines[l];
        for (uint32_t i = s->count; line && i < count; i++)
            line->last[i] = line->most[i] = line->now;
    }
    s->count = count;
}

void kpti_memory_series_advance(kpti_memory_series *s, uint64_t since)
{
    if (!s->step_ns) s->step_ns = KPTI_SERIES_FIRST_NS;
    if (since < s->count * s->step_ns) return;
    while (since / s->step_ns >= KPTI_SERIES_POINTS) {
        if (s->count)
            join_points(s);
        else
            s->step_ns *= 2;
    }
    if (since / s->step_ns >= s->count) begin_points(s, (uint32_t)(since / s->step_ns) + 1);
}

static int add_to(kpti_memory_series *s, uint32_t number, double bytes)
{
    const uint32_t at = s->count - 1;
    kpti_series_line *line = s->lines[number];
    if (!line) line = s->lines[number] = calloc(1, sizeof *line);
    if (!line) return 0;
    line->now += bytes;
    line->last[at] = line->now;
    if (line->now > line->most[at]) line->most[at] = line->now;
    return 1;
}

int kpti_memory_series_add(kpti_memory_series *s, uint32_t slot, double bytes)
{
    if (!s->count) begin_points(s, 1);
    return add_to(s, 0, bytes) && (slot >= KPTI_SERIES_DEVICES || add_to(s, slot + 1, bytes));
}

void kpti_memory_series_free(kpti_memory_series *s)
{
    for (uint32_t l = 0; l <= KPTI_SERIES_DEVICES; l++)
        free(s->lines[l]);
    memset(s, 0, sizeof *s);
}
