/* metadata_sections.h: what belongs to all of a recording's chunks, as the bytes of a KPT_CHUNK_TABLE: the runs, the
 * clock's points, threads, names, counters. A table is a row of sections; each says what it is and how
 * long, so that one which is not known is passed over:
 *
 *   u32 kind   u32 bytes that follow   …
 *
 * All is in the byte order of the machine, and padded to 8 bytes. A section that comes again replaces what
 * it said before; names come in the order of their ids, and may come twice. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_METADATA_SECTIONS_H
#define KPTI_CORE_RECORDING_SERIALIZED_METADATA_SECTIONS_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/clock.h"
#include "core/recording/recording.h"

/* Of chunks' events and of tables: what is in them can be replayed by builds with the same number. */
enum { KPTI_CHUNK_FORMAT = 0 };

enum {
    KPTI_TABLE_RUN =
        1, /* u32 number, u32 0; u64 start and stop ticks, the latter 0 while it lasts */
    KPTI_TABLE_CLOCK = 2,   /* a point: ticks, monotonic, Unix, hz, within, all u64 */
    KPTI_TABLE_THREAD = 3,  /* u32 index, flags, spans, 0; u64 os_tid, host_value; the name */
    KPTI_TABLE_NAMES = 4,   /* u32 first id, count; then each: u32 kind, line, 4 sizes; 4 texts */
    KPTI_TABLE_STATS = 5,   /* u64 min_duration_ns; then kpt_stats from its events on */
    KPTI_TABLE_FAR_ENDS = 6 /* kpti_far_end, by ticks */
};

/* A table in the making. */
typedef struct kpti_table {
    const kpti_env *env;
    char *bytes;
    size_t size;
    uint64_t room;
    int failed; /* there was no memory: nothing of it may be used */
} kpti_table;

void kpti_table_free(kpti_table *table);

void kpti_table_add_run(kpti_table *table, uint32_t number, const kpti_run *run);
void kpti_table_add_clock(kpti_table *table, const kpti_clock_point *point);
void kpti_table_add_thread(kpti_table *table, uint32_t index, const kpti_track *track);
void kpti_table_add_stats(kpti_table *table, uint64_t min_duration_ns, const kpt_stats *stats);
void kpti_table_add_far_ends(kpti_table *table, const kpti_far_end *ends, uint64_t count);
/* The functions from FIRST to before LAST, or fewer, up to about a megabyte; returns where it ended. */
uint32_t kpti_table_add_names(kpti_table *table, kpti_describe_fn describe, void *ctx,
                              uint32_t first, uint32_t last);

/* Fills OUT, a chunk for a sink, with the table. */
void kpti_table_chunk(const kpti_table *table, kpt_chunk *out);

/* A section of a table that is read. */
typedef struct kpti_section {
    uint32_t kind;
    uint32_t size;
    const char *bytes;
} kpti_section;

/* The next section, and AT behind it. 0: there is none; -1: the table is damaged. */
int kpti_table_next(const char *bytes, uint64_t size, uint64_t *at, kpti_section *out);

/* What a section says; 0: it is damaged. Texts are borrowed from the section. */
int kpti_section_run(const kpti_section *section, uint32_t *number, kpti_run *out);
int kpti_section_clock(const kpti_section *section, kpti_clock_point *out);
int kpti_section_thread(const kpti_section *section, uint32_t *index, kpti_track *out);
int kpti_section_stats(const kpti_section *section, uint64_t *min_duration_ns, kpt_stats *out);
/* How many there are, and each. */
uint32_t kpti_section_far_ends(const kpti_section *section);
kpti_far_end kpti_section_far_end(const kpti_section *section, uint32_t index);
/* FIRST and COUNT; then the names one by one, AT beginning with 0. */
int kpti_section_names(const kpti_section *section, uint32_t *first, uint32_t *count);
int kpti_section_next_name(const kpti_section *section, uint64_t *at, kpti_function_view *out);

#endif
