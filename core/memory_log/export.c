#include "core/memory_log/export.h"

#include "core/callstacks/symbolize.h"
#include "core/memory_log/devices.h"
#include "writers/memory/memory_chrome.h"
#include "writers/memory/memory_perfetto.h"
#include "writers/memory/memory_tables.h"
#include "writers/memory/memory_viz.h"

typedef int (*write_fn)(const kpti_memory_dump *dump, kpti_out_file *out);

/* The state of one export. */
typedef struct exporting {
    const kpti_memory_source *source;
    const char *path;
    kpti_error *error;
    write_fn write;
    kpti_memory_devices *devices;
    kpti_memory_history history;
    kpt_traceback *stacks; /* each distinct stack once, by number */
    uint32_t *numbers;
    uint64_t stack_count;
} exporting;

static kpt_status no_memory(kpti_error *error)
{
    return kpti_fail(error, KPT_E_MEMORY, "export: no memory");
}

/* Lists the distinct stacks of all entries, sorted. */
static int list_stacks(exporting *e)
{
    const kpti_memory_history *h = &e->history;
    uint64_t kept = 0;
    uint64_t count = 0;
    e->numbers = malloc((h->count + 1) * sizeof *e->numbers);
    if (!e->numbers) return 0;
    for (uint64_t i = 0; i < h->count; i++)
        if (h->entries[i].stack) e->numbers[count++] = h->entries[i].stack;
    if (count) qsort(e->numbers, count, sizeof *e->numbers, kpti_memory_by_stack);
    for (uint64_t i = 0; i < count; i++)
        if (!kept || e->numbers[kept - 1] != e->numbers[i]) e->numbers[kept++] = e->numbers[i];
    e->stack_count = kept;
    e->stacks = calloc(kept + 1, sizeof *e->stacks);
    for (uint64_t i = 0; e->stacks && i < kept; i++)
        e->stacks[i].python = e->numbers[i];
    return e->stacks != NULL;
}

static const struct format {
    const char *suffix;
    write_fn write;
} formats[] = {{".pickle", kpti_memory_viz_write},
               {".tables.json", kpti_memory_tables_write},
               {".json", kpti_memory_chrome_write},
               {".pftrace", kpti_memory_perfetto_write}};
enum { FORMATS = sizeof formats / sizeof *formats };

static kpt_status cant_write(const exporting *e, int number)
{
    return kpti_fail(e->error, KPT_E_IO, "%s can't be written: %s", e->path, strerror(number));
}

/* A kpt_symbols_fn: writes the file once the stacks are symbolized. */
static kpt_status write_file(void *ctx, const kpt_symbols *symbols)
{
    exporting *e = ctx;
    kpti_out_file out = {.fd = -1};
    const kpti_memory_dump dump = {.history = &e->history,
                                   .devices = e->devices->devices,
                                   .device_count = e->devices->count,
                                   .pools = e->devices->pools,
                                   .pool_count = KPTI_POOLS,
                                   .has_reported = e->devices->has_reported,
                                   .reported_merged = kpti_memory_log_pools(e->source->log)->merged,
                                   .stacks = e->numbers,
                                   .stack_count = e->stack_count,
                                   .symbols = symbols};
    int number = kpti_out_open(&out, e->path);
    int whole;
    if (number) return cant_write(e, number);
    whole = e->write(&dump, &out);
    number = kpti_out_close(&out, whole);
    if (!whole) return no_memory(e->error);
    return number ? cant_write(e, number) : KPT_OK;
}

/* Appends the entries of CHUNK to the COUNT entries so far, and returns the new count. */
static uint64_t read_chunk(const kpti_memory_devices *devices, kpti_memory_entry *entries,
                           uint64_t count, const kpti_memory_copy *copy, uint64_t chunk)
{
    const kpti_memory_event *e = copy->events + copy->chunks[chunk].first;
    uint64_t whole = 0;
    for (uint64_t i = 0; i < copy->chunks[chunk].count; i++, e++) {
        kpti_memory_entry *entry = &entries[count];
        if (kpti_memory_kind(e) == KPTI_MEMORY_TIME) {
            whole = e->address;
            continue;
        }
        memset(entry, 0, sizeof *entry);
        entry->time_ns =
            (int64_t)((whole & ~UINT64_C(0xFFFFFFFF)) | e->ticks); /* ticks, converted later */
        entry->address = e->address;
        entry->size = kpti_memory_size(e);
        entry->os_tid = copy->chunks[chunk].os_tid;
        entry->stack = e->stack;
        entry->partner = (uint32_t)count;
        entry->pool = (uint16_t)kpti_memory_pool(e);
        entry->kind = (uint16_t)kpti_memory_kind(e);
        entry->device = devices->pool_devices[entry->pool].device;
        entry->space = devices->pool_devices[entry->pool].space;
        count++;
    }
    return count;
}

static int read_history(exporting *e)
{
    const kpti_memory_source *s = e->source;
    kpti_memory_copy *copy = kpti_memory_log_copy(s->log);
    kpti_memory_entry *entries = copy ? malloc((copy->event_count + 1) * sizeof *entries) : NULL;
    const kpti_memory_wish *wish = kpti_memory_log_wish(s->log);
    kpti_clock clock;
    uint64_t count = 0;
    uint64_t dropped = 0;
    /* Made after the copy, so that it contains every pool that the copied events refer to. */
    e->devices = kpti_memory_devices_make(kpti_memory_log_pools(s->log));
    if (entries && e->devices) {
        for (uint64_t i = 0; i < copy->chunk_count; i++)
            count = read_chunk(e->devices, entries, count, copy, i);
        dropped = copy->dropped;
    }
    kpti_memory_copy_free(copy);
    if (!entries || !e->devices) {
        free(entries);
        return 0;
    }
    kpti_clock_between(&s->points[0], &s->points[1], &clock);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t ticks = (uint64_t)entries[i].time_ns;
        kpti_clock_convert(&clock, &ticks, &entries[i].time_ns, 1);
    }
    return kpti_memory_history_make(&e->history, entries, count, dropped, wish->most_events,
                                    wish->sample_bytes);
}

static kpt_status export_all(exporting *e)
{
    const kpti_symbolizer symbolizer = {e->source->env, NULL, NULL, write_file, e};
    kpti_error own = {""};
    kpt_status status;
    if (!read_history(e) || !list_stacks(e)) return no_memory(e->error);
    status = kpti_symbolize(&symbolizer, e->stacks, e->stack_count, &own);
    if (status == KPT_E_MEMORY && !e->error->text[0]) *e->error = own;
    return status;
}

static write_fn writer_of(const char *path)
{
    const size_t length = strlen(path);
    for (int i = 0; i < FORMATS; i++) {
        const size_t size = strlen(formats[i].suffix);
        if (length > size && strcmp(path + length - size, formats[i].suffix) == 0)
            return formats[i].write;
    }
    return NULL;
}

kpt_status kpti_memory_export(const kpti_memory_source *source, const char *path, kpti_error *error)
{
    exporting e = {.source = source, .path = path, .error = error, .write = writer_of(path)};
    kpt_status status;
    if (!e.write)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "the path of a memory export must end in .pickle (for torch's memory "
                         "viewer), .json, .pftrace or .tables.json: %s",
                         path);
    status = export_all(&e);
    kpti_memory_history_free(&e.history);
    kpti_memory_devices_free(e.devices);
    free(e.numbers);
    free(e.stacks);
    return status;
}
