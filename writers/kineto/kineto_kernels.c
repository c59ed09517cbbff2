#include "writers/kineto/kineto_kernels.h"

#include <errno.h>

#include "writers/encode/json_scan.h"

/* How much of the file is read at once, and the size of the longest event that is read. */
enum { WINDOW = 256 * 1024, MAX_WINDOW = 64 * 1024 * 1024 };

/* --- one event -------------------------------------------------------------------------------- */

/* The kind of an event. */
enum { OTHER, LAUNCH, WORK };

typedef struct event {
    int kind;
    int has_tid, has_time, has_correlation, has_own;
    int64_t tid;
    int64_t time_ns; /* since the file's base time */
    int64_t correlation;
    const char *arguments_end; /* end of the last argument; NULL: no arguments object */
    int no_arguments;
} event;

static int ends_with(const char *string, const char *string_end, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(string_end - string) > size && memcmp(string_end - 1 - size, text, size) == 0;
}

static int kind_of(const char *string, const char *end)
{
    if (*string != '"') return OTHER;
    if (kpti_json_is(string, end, "kernel") || kpti_json_is(string, end, "gpu_memcpy") ||
        kpti_json_is(string, end, "gpu_memset"))
        return WORK;
    return ends_with(string, end, "_runtime") || ends_with(string, end, "_driver") ? LAUNCH : OTHER;
}

/* Reads microseconds with at most three decimals, the most that Kineto writes. */
static int read_time(const char *at, const char *end, int64_t *ns)
{
    const char *point = memchr(at, '.', (size_t)(end - at));
    int64_t decimals = 0;
    int64_t us;
    if (!point) point = end;
    if (point - at > 15 || end - point > 4 || !kpti_json_whole(at, point, &us)) return 0;
    if (point < end && !kpti_json_whole(point + 1, end, &decimals)) return 0;
    for (int64_t i = end - point; point < end && i < 4; i++)
        decimals *= 10;
    *ns = us * 1000 + decimals;
    return 1;
}

/* Calls TAKE for each member of an object that begins at AT. Returns the end of the object, or NULL. */
static const char *each_member(event *e, const char *at, const char *end,
                               const char *(*take)(event *e, const char *at, const char *end))
{
    const char *next = kpti_json_skip_sign(at, end, '{');
    const char *empty = next ? kpti_json_skip_sign(next, end, '}') : NULL;
    if (empty || !next) return empty;
    while (next) {
        at = take(e, next, end);
        if (!at) return NULL;
        next = kpti_json_skip_sign(at, end, ',');
    }
    return kpti_json_skip_sign(at, end, '}');
}

static const char *take_argument(event *e, const char *at, const char *end)
{
    kpti_json_member m;
    at = kpti_json_skip_member(at, end, &m);
    e->no_arguments = 0;
    e->arguments_end = at;
    if (!at) return NULL;
    if (kpti_json_is(m.key, m.key_end, "correlation"))
        e->has_correlation = kpti_json_whole(m.value, at, &e->correlation);
    else if (kpti_json_is(m.key, m.key_end, KPTI_KINETO_STACK))
        e->has_own = 1;
    return at;
}

/* Parses the arguments, and skips all other values. */
static const char *take_field(event *e, const char *at, const char *end)
{
    kpti_json_member m;
    const char *key = kpti_json_skip_space(at, end);
    const char *key_end = kpti_json_skip_string(key, end);
    if (key_end && kpti_json_is(key, key_end, "args")) {
        const char *value = kpti_json_skip_sign(key_end, end, ':');
        const char *inside = value ? kpti_json_skip_sign(value, end, '{') : NULL;
        if (inside) {
            e->no_arguments = 1;
            e->arguments_end = inside;
            return each_member(e, value, end, take_argument);
        }
    }
    at = kpti_json_skip_member(at, end, &m);
    if (!at) return NULL;
    if (kpti_json_is(m.key, m.key_end, "cat"))
        e->kind = kind_of(m.value, at);
    else if (kpti_json_is(m.key, m.key_end, "tid"))
        e->has_tid = kpti_json_whole(m.value, at, &e->tid);
    else if (kpti_json_is(m.key, m.key_end, "ts"))
        e->has_time = read_time(m.value, at, &e->time_ns);
    return at;
}

/* --- all events ------------------------------------------------------------------------------- */

typedef struct scan {
    kpti_kineto_gpu *gpu;
    const kpti_kineto_file *file;
    char *window;
    size_t capacity;
    size_t filled;
    uint64_t offset; /* of the window in the file */
} scan;

static int error_of(kpt_status status)
{
    return status == KPT_OK ? 0 : ENOMEM;
}

static int keep_launch(scan *s, const event *e)
{
    kpti_kineto_gpu *g = s->gpu;
    kpt_status status = kpti_array_reach(&g->heap, &g->launches, &g->launch_capacity,
                                         g->launch_count, sizeof *g->launches);
    if (status != KPT_OK) return error_of(status);
    g->launches[g->launch_count++] = (kpti_kineto_launch){
        s->file->base_ns + e->time_ns, (uint64_t)e->correlation, (uint32_t)e->tid, 0};
    return 0;
}

static int keep_work(scan *s, const event *e)
{
    kpti_kineto_gpu *g = s->gpu;
    kpt_status status =
        kpti_array_reach(&g->heap, &g->works, &g->work_capacity, g->work_count, sizeof *g->works);
    if (status != KPT_OK) return error_of(status);
    g->works[g->work_count++] =
        (kpti_kineto_work){s->offset + (uint64_t)(e->arguments_end - s->window),
                           (uint64_t)e->correlation, (uint32_t)e->no_arguments};
    return 0;
}

static int keep(scan *s, const event *e)
{
    if (!e->has_correlation || e->has_own) return 0;
    if (e->kind == WORK) return keep_work(s, e);
    if (e->kind != LAUNCH || !e->has_tid || !e->has_time || e->tid > UINT32_MAX) return 0;
    return keep_launch(s, e);
}

/* Reads the complete events in the window. *AT becomes the begin of the first incomplete event, or the end of
 * the list. */
static int take_events(scan *s, const char **at)
{
    const char *end = s->window + s->filled;
    for (;;) {
        event e = {.kind = OTHER};
        const char *begin = *at;
        const char *behind = begin;
        int error;
        if (s->offset + (uint64_t)(begin - s->window) > s->file->events_begin)
            behind = kpti_json_skip_sign(begin, end, ',');
        behind = behind ? each_member(&e, behind, end, take_field) : NULL;
        if (!behind) return 0;
        error = keep(s, &e);
        if (error) return error;
        *at = behind;
    }
}

/* Moves the bytes after AT to the beginning of the window, and fills the rest from the file. If no byte of the
 * window could be used, the window is enlarged. */
static int move_on(scan *s, const char *at)
{
    size_t rest = s->filled - (size_t)(at - s->window);
    uint64_t offset = s->offset + (uint64_t)(at - s->window);
    uint64_t left = s->file->events_end - offset - rest;
    size_t count;
    if (left == 0) return EBADMSG; /* all was read, and the rest is not an event */
    if (rest == s->capacity) {
        char *grown =
            s->capacity < MAX_WINDOW ? kpti_heap_take(&s->gpu->heap, s->capacity * 4) : NULL;
        if (!grown) return s->capacity < MAX_WINDOW ? ENOMEM : EBADMSG;
        memcpy(grown, s->window, rest);
        kpti_heap_give(&s->gpu->heap, s->window, s->capacity);
        s->window = grown;
        s->capacity *= 4;
    } else {
        memmove(s->window, at, rest);
    }
    count = left < s->capacity - rest ? (size_t)left : s->capacity - rest;
    s->offset = offset;
    s->filled = rest + count;
    return kpti_kineto_read(s->file, s->window + rest, count, offset + rest);
}

static int scan_events(scan *s)
{
    const char *at = s->window;
    for (;;) {
        int error = move_on(s, at);
        at = s->window;
        if (!error) error = take_events(s, &at);
        if (error) return error;
        if (s->offset + (uint64_t)(at - s->window) == s->file->events_end) return 0;
    }
}

static int by_time(const void *a, const void *b)
{
    const kpti_kineto_launch *l = a;
    const kpti_kineto_launch *r = b;
    return (l->time_ns > r->time_ns) - (l->time_ns < r->time_ns);
}

static int by_correlation(const void *a, const void *b)
{
    const kpti_kineto_launch *l = a;
    const kpti_kineto_launch *r = b;
    return (l->correlation > r->correlation) - (l->correlation < r->correlation);
}

static void sort_launches(kpti_kineto_gpu *gpu, int (*compare)(const void *a, const void *b))
{
    /* Kineto's events are mostly in both orders already */
    for (uint32_t i = 1; i < gpu->launch_count; i++)
        if (compare(&gpu->launches[i - 1], &gpu->launches[i]) > 0) {
            qsort(gpu->launches, gpu->launch_count, sizeof *gpu->launches, compare);
            return;
        }
}

int kpti_kineto_gpu_read(kpti_kineto_gpu *gpu, const kpti_kineto_file *file)
{
    scan s = {.gpu = gpu, .file = file, .capacity = WINDOW, .offset = file->events_begin};
    int error;
    s.window = kpti_heap_take(&gpu->heap, s.capacity);
    error = s.window ? scan_events(&s) : ENOMEM;
    kpti_heap_give(&gpu->heap, s.window, s.capacity);
    if (!error) sort_launches(gpu, by_time);
    return error;
}

kpt_status kpti_kineto_gpu_add(kpti_kineto_gpu *gpu, const kpti_kineto_launch *launch)
{
    const kpt_status status = kpti_array_reach(&gpu->heap, &gpu->launches, &gpu->launch_capacity,
                                               gpu->launch_count, sizeof *gpu->launches);
    if (status == KPT_OK) gpu->launches[gpu->launch_count++] = *launch;
    return status;
}

void kpti_kineto_gpu_by_time(kpti_kineto_gpu *gpu)
{
    sort_launches(gpu, by_time);
}

void kpti_kineto_gpu_sort(kpti_kineto_gpu *gpu)
{
    sort_launches(gpu, by_correlation);
}

void kpti_kineto_gpu_free(kpti_kineto_gpu *gpu)
{
    kpti_heap_give(&gpu->heap, gpu->launches, gpu->launch_capacity * sizeof *gpu->launches);
    kpti_heap_give(&gpu->heap, gpu->works, gpu->work_capacity * sizeof *gpu->works);
    *gpu = (kpti_kineto_gpu){.heap = gpu->heap};
}

uint32_t kpti_kineto_gpu_stack(const kpti_kineto_gpu *gpu, uint64_t correlation)
{
    const kpti_kineto_launch key = {.correlation = correlation};
    const kpti_kineto_launch *launch =
        gpu->launch_count
            ? bsearch(&key, gpu->launches, gpu->launch_count, sizeof key, by_correlation)
            : NULL;
    return launch ? launch->stack : 0;
}

/* --- the copy --------------------------------------------------------------------------------- */

static void put_stack(const kpti_kineto_gpu *gpu, const kpti_kineto_work *work, kpti_out_file *out,
                      const kpti_fragments *stacks)
{
    const uint32_t stack = kpti_kineto_gpu_stack(gpu, work->correlation);
    kpti_fragment text = {NULL, 0, 0};
    if (stack) text = kpti_fragments_get(stacks, stack, text);
    if (!text.size) return;
    if (!work->is_first) kpti_out_put(out, ", ", 2);
    kpti_out_put(out, text.text, text.size);
}

int kpti_kineto_gpu_copy(const kpti_kineto_gpu *gpu, const kpti_kineto_file *file,
                         kpti_out_file *out, const kpti_fragments *stacks)
{
    char *window = kpti_heap_take(&gpu->heap, WINDOW);
    int error = window ? 0 : ENOMEM;
    uint32_t next = 0;
    for (uint64_t from = kpti_kineto_put_head(file, out); !error && from < file->events_end;) {
        const uint64_t left = file->events_end - from;
        const uint64_t to = from + (left < WINDOW ? left : WINDOW);
        const uint64_t begin = from;
        error = kpti_kineto_read(file, window, (size_t)(to - from), from);
        for (; !error && next < gpu->work_count && gpu->works[next].offset <= to; next++) {
            const uint64_t offset = gpu->works[next].offset;
            kpti_out_put(out, window + (from - begin), (size_t)(offset - from));
            put_stack(gpu, &gpu->works[next], out, stacks);
            from = offset;
        }
        if (!error) kpti_out_put(out, window + (from - begin), (size_t)(to - from));
        from = to;
    }
    kpti_heap_give(&gpu->heap, window, WINDOW);
    return error;
}
