#include "core/recording/serialized/metadata_sections.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"

enum { ALIGN = 8, HEAD_BYTES = 8, NAME_HEAD_BYTES = 24, TEXTS = 4 };
enum { NAMES_BYTES = 1 << 20 };
/* Longest text. Longer texts are cut, so that sizes always fit. */
enum { MAX_TEXT = 1 << 24 };

/* --- writing ---------------------------------------------------------------------------------- */

void kpti_metadata_free(kpti_metadata *table)
{
    kpti_free(table->env, table->bytes, table->capacity);
    table->bytes = NULL;
    table->size = table->capacity = 0;
}

static void put(kpti_metadata *t, const void *bytes, size_t size)
{
    if (t->failed || !size) return;
    t->failed = !kpti_host_array_reserve(t->env, &t->bytes, &t->capacity, t->size + size, 1);
    if (t->failed) return;
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

static void put_u32(kpti_metadata *t, uint32_t value)
{
    put(t, &value, sizeof value);
}

static void put_u64(kpti_metadata *t, uint64_t value)
{
    put(t, &value, sizeof value);
}

/* Begins a section. Returns its position, for end(). */
static size_t begin(kpti_metadata *t, uint32_t kind)
{
    size_t at = t->size;
    kpti_assert(t->failed || at % ALIGN == 0); /* the previous section has ended */
    put_u32(t, kind);
    put_u32(t, 0);
    return at;
}

static void end(kpti_metadata *t, size_t at)
{
    static const char zeroes[ALIGN] = {0};
    uint32_t size;
    put(t, zeroes, (ALIGN - t->size % ALIGN) % ALIGN);
    if (t->failed) return;
    kpti_assert(t->size <= t->capacity && t->size >= at + HEAD_BYTES);
    size = (uint32_t)(t->size - at - HEAD_BYTES);
    memcpy(t->bytes + at + sizeof(uint32_t), &size, sizeof size);
}

void kpti_metadata_add_run(kpti_metadata *t, uint32_t number, const kpti_run *run)
{
    size_t at = begin(t, KPTI_METADATA_RUN);
    put_u32(t, number);
    put_u32(t, 0);
    put_u64(t, run->start_ticks);
    put_u64(t, run->stop_ticks);
    end(t, at);
}

void kpti_metadata_add_clock(kpti_metadata *t, const kpti_clock_point *point)
{
    size_t at = begin(t, KPTI_METADATA_CLOCK);
    put_u64(t, point->ticks);
    put_u64(t, (uint64_t)point->monotonic_ns);
    put_u64(t, (uint64_t)point->unix_ns);
    put_u64(t, point->hz);
    put_u64(t, point->within_ticks);
    end(t, at);
}

void kpti_metadata_add_thread(kpti_metadata *t, uint32_t index, const kpti_track *track)
{
    size_t at = begin(t, KPTI_METADATA_THREAD);
    uint32_t size = track->name.size < MAX_TEXT ? (uint32_t)track->name.size : MAX_TEXT;
    put_u32(t, index);
    put_u32(t, track->flags);
    put_u32(t, track->spans);
    put_u32(t, size);
    put_u64(t, track->os_tid);
    put_u64(t, track->host_value);
    put(t, track->name.data, size);
    end(t, at);
}

void kpti_metadata_add_stats(kpti_metadata *t, uint64_t min_duration_ns, const kpt_stats *stats)
{
    size_t at = begin(t, KPTI_METADATA_STATS);
    put_u64(t, min_duration_ns);
    put(t, &stats->events, KPT_STATS_V1_SIZE - offsetof(kpt_stats, events));
    end(t, at);
}

void kpti_metadata_add_cross_thread_ends(kpti_metadata *t, const kpti_cross_thread_end *ends,
                                         uint64_t count)
{
    size_t at = begin(t, KPTI_METADATA_CROSS_THREAD_ENDS);
    put(t, ends, (size_t)count * sizeof *ends);
    end(t, at);
}

static void put_name(kpti_metadata *t, const kpti_function_view *view)
{
    const kpt_str *texts[TEXTS] = {&view->display, &view->function, &view->qualname, &view->file};
    uint32_t sizes[TEXTS];
    put_u32(t, view->kind);
    put_u32(t, view->kind == KPT_KIND_OPERATOR ? view->scope : view->first_line);
    for (int i = 0; i < TEXTS; i++)
        sizes[i] = texts[i]->size < MAX_TEXT ? (uint32_t)texts[i]->size : MAX_TEXT;
    put(t, sizes, sizeof sizes);
    for (int i = 0; i < TEXTS; i++)
        put(t, texts[i]->data, sizes[i]);
}

uint32_t kpti_metadata_add_names(kpti_metadata *t, kpti_describe_fn describe, void *ctx,
                                 uint32_t first, uint32_t last)
{
    size_t at = begin(t, KPTI_METADATA_NAMES);
    size_t count_at = t->size + sizeof first;
    uint32_t id = first;
    uint32_t count;
    put_u32(t, first);
    put_u32(t, 0);
    for (; id < last && !t->failed && t->size - at < NAMES_BYTES; id++) {
        kpti_function_view view;
        memset(&view, 0, sizeof view);
        (void)describe(ctx, id, &view);
        if (view.kind == KPT_KIND_OPERATOR) t->format = KPTI_CHUNK_FORMAT_OPERATORS;
        put_name(t, &view);
    }
    end(t, at);
    if (t->failed) return first;
    count = id - first;
    memcpy(t->bytes + count_at, &count, sizeof count);
    return id;
}

void kpti_metadata_chunk(const kpti_metadata *t, kpt_chunk *out)
{
    KPT_INIT(out);
    out->format = t->format;
    out->thread = KPT_CHUNK_TABLE;
    out->data = t->bytes;
    out->size_bytes = t->size;
}

/* --- reading ---------------------------------------------------------------------------------- */

static uint32_t u32_at(const char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t u64_at(const char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

int kpti_metadata_next(const char *bytes, uint64_t size, uint64_t *at, kpti_section *out)
{
    if (*at == size) return 0;
    if (size - *at < HEAD_BYTES) return -1;
    out->kind = u32_at(bytes + *at);
    out->size = u32_at(bytes + *at + 4);
    out->bytes = bytes + *at + HEAD_BYTES;
    if (out->size % ALIGN || out->size > size - *at - HEAD_BYTES) return -1;
    *at += HEAD_BYTES + out->size;
    return 1;
}

int kpti_section_run(const kpti_section *s, uint32_t *number, kpti_run *out)
{
    if (s->size < 24) return 0;
    *number = u32_at(s->bytes);
    *out = (kpti_run){u64_at(s->bytes + 8), u64_at(s->bytes + 16)};
    return 1;
}

int kpti_section_clock(const kpti_section *s, kpti_clock_point *out)
{
    static const int64_t most_ns = INT64_MAX / 4; /* so that no difference overflows */
    if (s->size < 40) return 0;
    *out = (kpti_clock_point){
        u64_at(s->bytes),      (int64_t)u64_at(s->bytes + 8), (int64_t)u64_at(s->bytes + 16),
        u64_at(s->bytes + 24), u64_at(s->bytes + 32),         0};
    return out->monotonic_ns > -most_ns && out->monotonic_ns < most_ns && out->unix_ns > -most_ns &&
           out->unix_ns < most_ns;
}

int kpti_section_thread(const kpti_section *s, uint32_t *index, kpti_track *out)
{
    if (s->size < 32 || u32_at(s->bytes + 12) > s->size - 32) return 0;
    *index = u32_at(s->bytes);
    out->flags = u32_at(s->bytes + 4);
    out->spans = u32_at(s->bytes + 8);
    out->os_tid = u64_at(s->bytes + 16);
    out->host_value = u64_at(s->bytes + 24);
    out->name = (kpt_str){s->bytes + 32, u32_at(s->bytes + 12)};
    return 1;
}

int kpti_section_stats(const kpti_section *s, uint64_t *min_duration_ns, kpt_stats *out)
{
    const size_t size = KPT_STATS_V1_SIZE - offsetof(kpt_stats, events);
    if (s->size < 8 + size) return 0;
    *min_duration_ns = u64_at(s->bytes);
    KPT_INIT(out);
    memcpy(&out->events, s->bytes + 8, size);
    return 1;
}

uint32_t kpti_section_cross_thread_ends(const kpti_section *s)
{
    return s->size / (uint32_t)sizeof(kpti_cross_thread_end);
}

kpti_cross_thread_end kpti_section_cross_thread_end(const kpti_section *s, uint32_t index)
{
    kpti_cross_thread_end out;
    memcpy(&out, s->bytes + (size_t)index * sizeof out, sizeof out);
    return out;
}

int kpti_section_names(const kpti_section *s, uint32_t *first, uint32_t *count)
{
    if (s->size < 8) return 0;
    *first = u32_at(s->bytes);
    *count = u32_at(s->bytes + 4);
    return *count <= (s->size - 8) / NAME_HEAD_BYTES && *first <= KPTI_MAX_NUMBER - *count;
}

int kpti_section_next_name(const kpti_section *s, uint64_t *at, kpti_function_view *out)
{
    kpt_str *texts[TEXTS] = {&out->display, &out->function, &out->qualname, &out->file};
    const char *head;
    if (!*at) *at = 8;
    if (s->size - *at < NAME_HEAD_BYTES) return 0;
    head = s->bytes + *at;
    *at += NAME_HEAD_BYTES;
    out->kind = u32_at(head);
    if (out->kind > KPT_KIND_C && out->kind != KPT_KIND_OPERATOR) return 0; /* 0: not known */
    out->scope = out->kind == KPT_KIND_OPERATOR ? u32_at(head + 4) & KPT_SCOPE_MAX : 0;
    out->first_line = out->kind == KPT_KIND_OPERATOR ? 0 : u32_at(head + 4);
    for (int i = 0; i < TEXTS; i++) {
        const uint32_t size = u32_at(head + 8 + sizeof(uint32_t) * (size_t)i);
        if (size > s->size - *at) return 0;
        *texts[i] = (kpt_str){s->bytes + *at, size};
        *at += size;
    }
    return 1;
}
