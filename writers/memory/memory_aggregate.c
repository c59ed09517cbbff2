#include "writers/memory/memory_aggregate.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "writers/memory/memory_page.h"

/* A record that is kept: one with names for good, one with events until its entries are added. */
typedef struct kept_record {
    struct kept_record *next;
    uint64_t size;
    char bytes[];
} kept_record;

struct kpti_memory_aggregate {
    pthread_mutex_t lock; /* guards all else */
    kpti_memory_history history;
    kpti_memory_sums sums;
    kept_record *names;
    kept_record *events; /* in their order */
    kept_record **last_event;
    kept_record *at; /* the next one that the history reads */
};

static void rewind_events(void *aggregate)
{
    kpti_memory_aggregate *a = aggregate;
    a->at = a->events;
}

static int next_event(void *aggregate, const char **bytes, uint64_t *size)
{
    kpti_memory_aggregate *a = aggregate;
    if (!a->at) return 0;
    *bytes = a->at->bytes;
    *size = a->at->size;
    a->at = a->at->next;
    return 1;
}

static void free_records(kept_record *record)
{
    while (record) {
        kept_record *next = record->next;
        free(record);
        record = next;
    }
}

kpti_memory_aggregate *kpti_memory_aggregate_make(void)
{
    kpti_memory_aggregate *a = calloc(1, sizeof *a);
    const kpti_memory_records records = {a, rewind_events, next_event};
    if (!a) return NULL;
    a->last_event = &a->events;
    (void)pthread_mutex_init(&a->lock, NULL);
    if (kpti_memory_history_begin(&a->history, &records) == KPT_OK) return a;
    kpti_memory_aggregate_free(a);
    return NULL;
}

void kpti_memory_aggregate_free(kpti_memory_aggregate *a)
{
    if (!a) return;
    kpti_memory_history_close(&a->history);
    kpti_memory_sums_free(&a->sums);
    free_records(a->names);
    free_records(a->events);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

/* Adds the entries of the events that wait. */
static kpt_status add_entries_locked(kpti_memory_aggregate *a)
{
    kpti_memory_history *h = &a->history;
    kpti_memory_entry entry;
    int whole = 1;
    if (h->states == 1) kpti_memory_sums_begin(&a->sums, h->time.ns, h->sample_bytes, 0);
    rewind_events(a);
    while (whole && kpti_memory_history_next(h, &entry))
        whole = kpti_memory_sums_take(&a->sums, h->names.pools, &entry);
    free_records(a->events);
    a->events = a->at = NULL;
    a->last_event = &a->events;
    if (h->is_damaged) return KPT_E_INVALID;
    return whole && !h->failed ? KPT_OK : KPT_E_MEMORY;
}

/* Keeps RECORD: what it is decides how long. */
static kpt_status take_locked(kpti_memory_aggregate *a, kept_record *record)
{
    uint32_t what;
    const kpt_status status =
        kpti_memory_history_take(&a->history, record->bytes, record->size, &what);
    if (what == KPTI_MEMORY_NAMES) { /* also if it is damaged: its first names are in use */
        record->next = a->names;
        a->names = record;
        return status;
    }
    if (what == KPTI_MEMORY_EVENTS) {
        *a->last_event = record;
        a->last_event = &record->next;
        return status;
    }
    free(record);
    return what == KPTI_MEMORY_STATE && status == KPT_OK ? add_entries_locked(a) : status;
}

kpt_status kpti_memory_aggregate_take(kpti_memory_aggregate *a, const void *bytes, uint64_t size)
{
    kept_record *record = malloc(sizeof *record + size);
    kpt_status status;
    if (!record) return KPT_E_MEMORY;
    record->next = NULL;
    record->size = size;
    memcpy(record->bytes, bytes, (size_t)size);
    pthread_mutex_lock(&a->lock);
    status = take_locked(a, record);
    pthread_mutex_unlock(&a->lock);
    return status;
}

static int ends_with(const char *path, const char *suffix)
{
    const size_t length = strlen(path);
    const size_t size = strlen(suffix);
    return length > size && strcmp(path + length - size, suffix) == 0;
}

static int write_locked(kpti_memory_aggregate *a, const char *path)
{
    kpti_out_file out = {.fd = -1};
    int whole;
    int error;
    a->history.pid = (uint64_t)getpid();
    if (kpti_memory_names_finish(&a->history.names) != KPT_OK) return ENOMEM;
    error = kpti_out_open(&out, path);
    if (error) return error;
    whole = ends_with(path, ".html") ? kpti_memory_page_put(&a->history, &a->sums, &out)
                                     : kpti_memory_tables_put_file(&a->history, &a->sums, &out);
    error = kpti_out_close(&out, whole);
    return whole ? error : ENOMEM;
}

int kpti_memory_aggregate_write(kpti_memory_aggregate *a, const char *path)
{
    int number;
    if (!ends_with(path, ".html") && !ends_with(path, ".tables.json")) return EINVAL;
    pthread_mutex_lock(&a->lock);
    number = write_locked(a, path);
    pthread_mutex_unlock(&a->lock);
    return number;
}
