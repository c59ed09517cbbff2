/* metadata_sections.h: the data that belongs to all chunks of a recording, as the bytes of a KPT_CHUNK_TABLE:
 * runs, points of the clock, threads, names, counters. A table is a sequence of sections. Each section has its
 * kind and its size, so that a reader can skip unknown kinds:
 *
 *   u32 kind   u32 bytes that follow   …
 *
 * All values are in the byte order of the machine, and sections are padded to 8 bytes. A repeated section
 * replaces the earlier one. Names are in the order of their ids, and may be repeated. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_METADATA_SECTIONS_H
#define KPTI_CORE_RECORDING_SERIALIZED_METADATA_SECTIONS_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/clock.h"
#include "core/recording/recording.h"

/* Version of the events in chunks and of the tables. A build can replay chunks up to its newest one. A chunk
 * has the first one that suffices for it, so that older builds can replay it. KPTI_PACKED_FORMAT (packed_words.h), a bit
 * that no format has, is added to it if the events are packed: so the next format is 8. */
enum {
    KPTI_CHUNK_FORMAT = 0,
    KPTI_CHUNK_FORMAT_OPERATORS = 1,
    KPTI_CHUNK_FORMAT_INPUTS = 2,       /* operators have inputs */
    KPTI_CHUNK_FORMAT_RANGE_INPUTS = 3, /* ranges have inputs, too */
    KPTI_CHUNK_FORMAT_NEWEST = KPTI_CHUNK_FORMAT_RANGE_INPUTS
};

enum {
    KPTI_METADATA_RUN = 1,   /* u32 number, u32 0; u64 start and stop ticks, stop 0 while it runs */
    KPTI_METADATA_CLOCK = 2, /* a point: ticks, monotonic, Unix, hz, within, all u64 */
    /* u32 index, flags, spans, size of the name; u64 os_tid, host_value; name */
    KPTI_METADATA_THREAD = 3,
    /* u32 first id, count; for each: u32 kind, line (of an operator: scope), 4 sizes; 4 texts */
    KPTI_METADATA_NAMES = 4,
    KPTI_METADATA_STATS = 5,            /* u64 min_duration_ns; kpt_stats from events on */
    KPTI_METADATA_CROSS_THREAD_ENDS = 6 /* kpti_cross_thread_end, in the order of ticks */
};

/* A table that is being written. */
typedef struct kpti_metadata {
    const kpti_env *env;
    char *bytes;
    size_t size;
    uint64_t capacity;
    int failed; /* there was no memory; the table must not be used */
    uint32_t format;
} kpti_metadata;

void kpti_metadata_free(kpti_metadata *table);

void kpti_metadata_add_run(kpti_metadata *table, uint32_t number, const kpti_run *run);
void kpti_metadata_add_clock(kpti_metadata *table, const kpti_clock_point *point);
void kpti_metadata_add_thread(kpti_metadata *table, uint32_t index, const kpti_track *track);
void kpti_metadata_add_stats(kpti_metadata *table, uint64_t min_duration_ns,
                             const kpt_stats *stats);
void kpti_metadata_add_cross_thread_ends(kpti_metadata *table, const kpti_cross_thread_end *ends,
                                         uint64_t count);
/* Adds the functions from FIRST up to LAST (exclusive), or fewer, up to about a megabyte. Returns the first id
 * that was not added. */
uint32_t kpti_metadata_add_names(kpti_metadata *table, kpti_describe_fn describe, void *ctx,
                                 uint32_t first, uint32_t last);

/* Fills OUT, a chunk for a sink, with the table. */
void kpti_metadata_chunk(const kpti_metadata *table, kpt_chunk *out);

/* A section of a table that is being read. */
typedef struct kpti_section {
    uint32_t kind;
    uint32_t size;
    const char *bytes;
} kpti_section;

/* Reads the next section and moves *AT after it. Returns 1, 0 at the end, or -1 if the table is damaged. */
int kpti_metadata_next(const char *bytes, uint64_t size, uint64_t *at, kpti_section *out);

/* Decode a section. Return 0 if it is damaged. Texts are borrowed from the section. */
int kpti_section_run(const kpti_section *section, uint32_t *number, kpti_run *out);
int kpti_section_clock(const kpti_section *section, kpti_clock_point *out);
int kpti_section_thread(const kpti_section *section, uint32_t *index, kpti_track *out);
int kpti_section_stats(const kpti_section *section, uint64_t *min_duration_ns, kpt_stats *out);
/* Return the number of far ends, and one of them. */
uint32_t kpti_section_cross_thread_ends(const kpti_section *section);
kpti_cross_thread_end kpti_section_cross_thread_end(const kpti_section *section, uint32_t index);
/* Reads FIRST and COUNT; then next_name reads the names one by one, with *AT 0 at first. Both return 0 if the
 * section is damaged. */
int kpti_section_names(const kpti_section *section, uint32_t *first, uint32_t *count);
int kpti_section_next_name(const kpti_section *section, uint64_t *at, kpti_function_view *out);

#endif
