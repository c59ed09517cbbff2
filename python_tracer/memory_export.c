#include "memory_export.h"

#include "memory_history.h"
#include "memory_viz.h"
#include "symbolize.h"

static const char *const pools[] = {"python raw", "python mem", "python object"};
enum { POOLS = sizeof pools / sizeof *pools };

/* What the way from the log to the file needs. */
typedef struct exporting {
    const kpti_memory_source *source;
    const char *path;
    kpti_error *error;
    kpti_memory_history history;
    kpti_clock clock;
    kpt_traceback *stacks; /* each once, by number */
    uint32_t *numbers;
    uint64_t stack_count;
} exporting;

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static kpt_status no_memory(kpti_error *error)
{
    return kpti_fail(error, KPT_E_MEMORY, "export: no memory");
}

/* The stacks of all entries, sorted, each once. */
static int list_stacks(exporting *e)
{
    const kpti_memory_history *h = &e->history;
    uint64_t kept = 0;
    uint64_t count = 0;
    e->numbers = malloc((h->count + 1) * sizeof *e->numbers);
    if (!e->numbers) return 0;
    for (uint64_t i = 0; i < h->count; i++)
        if (h->entries[i].stack) e->numbers[count++] = h->entries[i].stack;
    if (count) qsort(e->numbers, count, sizeof *e->numbers, by_number);
    for (uint64_t i = 0; i < count; i++)
        if (!kept || e->numbers[kept - 1] != e->numbers[i]) e->numbers[kept++] = e->numbers[i];
    e->stack_count = kept;
    e->stacks = calloc(kept + 1, sizeof *e->stacks);
    for (uint64_t i = 0; e->stacks && i < kept; i++)
        e->stacks[i].python = e->numbers[i];
    return e->stacks != NULL;
}

/* A kpt_symbols_fn: with all in words, the file is written. */
static kpt_status write_file(void *ctx, const kpt_symbols *symbols)
{
    exporting *e = ctx;
    kpti_out_file out = {.fd = -1};
    const kpti_memory_viz viz = {&e->history, &e->clock,  e->source->sample_bytes, pools,
                                 POOLS,       e->numbers, e->stack_count,          symbols};
    int number = kpti_out_open(&out, e->path);
    int whole;
    if (number)
        return kpti_fail(e->error, KPT_E_IO, "%s can't be written: %s", e->path, strerror(number));
    whole = kpti_memory_viz_write(&viz, &out);
    number = kpti_out_close(&out, whole);
    if (!whole) return no_memory(e->error);
    if (number)
        return kpti_fail(e->error, KPT_E_IO, "%s can't be written: %s", e->path, strerror(number));
    return KPT_OK;
}

static kpt_status export_all(exporting *e)
{
    const kpti_memory_source *s = e->source;
    const kpti_symbolizer symbolizer = {s->env, NULL, NULL, write_file, e};
    kpti_memory_copy *copy = kpti_memory_log_copy(s->log);
    kpti_error own = {""};
    kpt_status status;
    const int read = copy && kpti_memory_history_read(&e->history, copy);
    kpti_memory_copy_free(copy);
    if (!read || !list_stacks(e)) return no_memory(e->error);
    kpti_clock_between(&s->points[0], &s->points[1], &e->clock);
    status = kpti_symbolize(&symbolizer, e->stacks, e->stack_count, &own);
    if (status == KPT_E_MEMORY && own.text[0] && !e->error->text[0]) *e->error = own;
    return status;
}

static int ends_with(const char *path, const char *suffix)
{
    const size_t length = strlen(path);
    return length > strlen(suffix) && strcmp(path + length - strlen(suffix), suffix) == 0;
}

kpt_status kpti_memory_export(const kpti_memory_source *source, const char *path, kpti_error *error)
{
    exporting e = {.source = source, .path = path, .error = error};
    kpt_status status;
    if (!ends_with(path, ".pickle"))
        return kpti_fail(error, KPT_E_UNSUPPORTED, "export: %s has none of the suffixes .pickle",
                         path);
    status = export_all(&e);
    kpti_memory_history_free(&e.history);
    free(e.numbers);
    free(e.stacks);
    return status;
}
