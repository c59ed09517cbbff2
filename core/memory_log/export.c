#include "core/memory_log/export.h"

#include <errno.h>
#include <unistd.h>

#include "writers/memory/memory_formats.h"

/* The packed records of a log, in memory. */
typedef struct packed {
    struct {
        char *bytes;
        uint64_t size;
    } * records;
    uint64_t count;
    uint64_t capacity;
    uint64_t at; /* the next one that is read */
} packed;

/* A kpt_memory_sink_fn. */
static kpt_status keep_record(void *ctx, const void *bytes, uint64_t size)
{
    packed *p = ctx;
    char *copy = malloc((size_t)size);
    if (!copy || !kpti_array_reserve(&kpti_malloc_heap, &p->records, &p->capacity, p->count + 1,
                                     sizeof *p->records)) {
        free(copy);
        return KPT_E_MEMORY;
    }
    memcpy(copy, bytes, (size_t)size);
    p->records[p->count].bytes = copy;
    p->records[p->count++].size = size;
    return KPT_OK;
}

static void rewind_records(void *ctx)
{
    ((packed *)ctx)->at = 0;
}

static int next_record(void *ctx, const char **bytes, uint64_t *size)
{
    packed *p = ctx;
    if (p->at == p->count) return 0;
    *bytes = p->records[p->at].bytes;
    *size = p->records[p->at++].size;
    return 1;
}

static void free_records(packed *p)
{
    for (uint64_t i = 0; i < p->count; i++)
        free(p->records[i].bytes);
    free(p->records);
}

static kpt_status pack_copy(const kpti_memory_source *s, const kpti_memory_copy *copy,
                            kpti_event_packer *packer)
{
    kpti_event_run *runs = malloc((copy->chunk_count + 1) * sizeof *runs);
    if (!runs) return KPT_E_MEMORY;
    for (uint64_t i = 0; i < copy->chunk_count; i++)
        runs[i] = (kpti_event_run){.events = copy->events + copy->chunks[i].first,
                                   .count = copy->chunks[i].count,
                                   .os_tid = copy->chunks[i].os_tid};
    (void)kpti_event_packer_flush(packer, &s->points[0], 0, 0);
    kpti_event_packer_pack(packer, runs, copy->chunk_count, UINT64_MAX);
    free(runs);
    return kpti_event_packer_flush(packer, &s->points[1],
                                   kpti_clock_rate_between(&s->points[0], &s->points[1]),
                                   copy->dropped);
}

static kpt_status pack_log(const kpti_memory_source *s, packed *out)
{
    kpti_memory_copy *copy = kpti_memory_log_copy(s->log);
    kpti_event_packer *packer =
        kpti_event_packer_make(keep_record, out, kpti_memory_log_pools(s->log),
                               kpti_memory_log_wish(s->log)->sample_bytes);
    const kpt_status status = copy && packer ? pack_copy(s, copy, packer) : KPT_E_MEMORY;
    kpti_memory_copy_free(copy);
    kpti_event_packer_free(packer);
    return status;
}

static kpt_status write_packed(const kpti_memory_source *s, packed *records,
                               kpti_memory_write_fn write, const char *path, kpti_error *error)
{
    const kpti_memory_records from = {records, rewind_records, next_record};
    kpti_memory_history history;
    kpt_status status =
        kpti_memory_history_open(&history, &from, kpti_memory_log_wish(s->log)->most_events);
    int number = ENOMEM;
    history.pid = (uint64_t)getpid();
    if (status == KPT_OK) number = kpti_memory_write_file(&history, write, path);
    kpti_memory_history_close(&history);
    if (!number) return KPT_OK;
    if (number == ENOMEM) return kpti_fail(error, KPT_E_MEMORY, "export: no memory");
    return kpti_fail(error, KPT_E_IO, "%s can't be written: %s", path, strerror(number));
}

kpt_status kpti_memory_export(const kpti_memory_source *source, const char *path, kpti_error *error)
{
    const kpti_memory_write_fn write = kpti_memory_writer_of(path);
    packed records = {0};
    kpt_status status;
    if (!write) return kpti_fail(error, KPT_E_UNSUPPORTED, KPTI_MEMORY_SUFFIXES ": %s", path);
    status = pack_log(source, &records);
    if (status == KPT_OK)
        status = write_packed(source, &records, write, path, error);
    else
        (void)kpti_fail(error, status, "export: no memory");
    free_records(&records);
    return status;
}
