/* perfetto_tracks.h: the packets that begin sequences and tracks. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_TRACKS_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_TRACKS_H

#include "writers/perfetto/perfetto_state.h"

void kpti_perfetto_begin_process(kpti_perfetto *writer, const kpti_writer_options *options);
kpt_status kpti_perfetto_begin_thread(kpti_perfetto *writer, const kpt_thread *thread);

/* Begins the sequence of a thread that was never delivered. Returns NULL if there is no memory. */
kpti_perfetto_track *kpti_perfetto_unknown_thread(kpti_perfetto *writer, uint32_t thread);

/* Returns the sequence of a thread, or NULL if the thread was never delivered and there is no memory for it. */
static inline kpti_perfetto_track *kpti_perfetto_track_of(kpti_perfetto *w, uint32_t thread)
{
    const uint32_t block = thread / KPTI_PERFETTO_BLOCK;
    if (block < w->block_capacity && w->track_blocks[block]) {
        kpti_perfetto_track *t = &w->track_blocks[block][thread % KPTI_PERFETTO_BLOCK];
        if (t->end_bytes) return t;
    }
    return kpti_perfetto_unknown_thread(w, thread);
}

/* Makes a track of the process, for values if IS_COUNTER. Returns its uuid, which events refer to. */
uint64_t kpti_perfetto_make_track(kpti_perfetto *writer, kpt_str name, int is_counter);
/* The same below the track PARENT; 0: at the top level. */
uint64_t kpti_perfetto_make_track_in(kpti_perfetto *writer, uint64_t parent, kpt_str name);
/* Returns the uuid of a thread's track. */
uint64_t kpti_perfetto_thread_track(const kpti_perfetto *writer, uint32_t thread);
/* Returns the uuid of the track that make_track made as number NUMBER, from 0. */
uint64_t kpti_perfetto_made_track(const kpti_perfetto *writer, uint64_t number);

/* Returns the key of a thread id in the map of threads, which cannot hold the largest number. */
static inline uint64_t kpti_perfetto_thread_key(uint64_t os_tid)
{
    return os_tid & INT64_MAX;
}

/* Begins a packet of a sequence, without a time, with space for a name. Returns the position of its fields. */
char *kpti_perfetto_open_packet(kpti_perfetto *writer, const kpti_perfetto_track *track_state,
                                char **packet);

#endif
