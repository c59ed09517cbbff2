/* perfetto.h: the Perfetto writer's own, shared by its files.
 *
 * Each thread is a packet sequence: its first packets clear the state, name the thread's track as
 * the default, and give the sequence a clock whose times are the nanoseconds since the packet
 * before; names are interned in it when they are first used. So a call is two packets of some eleven
 * and fifteen bytes. The first sequence of a process has what belongs to no thread, with Unix times. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_H

#include "abi/kpt_text.h"
#include "core/base/u64_map.h"
#include "writers/annotations/note_spans.h"
#include "writers/annotations/task_resumes.h"
#include "writers/annotations/task_tracks.h"
#include "writers/encode/escaped_strings.h"
#include "writers/encode/proto.h"
#include "writers/format.h"
#include "writers/perfetto/perfetto_wire.h"

/* Longer ones are cut, or left out: no viewer shows them, and an event must fit into the buffer. */
enum { KPTI_PERFETTO_MOST_NAME = 16 * 1024, KPTI_PERFETTO_MOST_ARGS = 64 * 1024 };
/* All of an event but those. */
enum { KPTI_PERFETTO_MOST_REST = 1024 };

/* What is noted at some calls, by the number that each sequence gives it. */
enum {
    KPTI_ANNOTATION_BEGAN_BEFORE = 1,
    KPTI_ANNOTATION_ENDED_BY_STOP = 2,
    KPTI_ANNOTATION_CLAMPED = 3,
    KPTI_ANNOTATION_RECOVERED = 4,
    KPTI_ANNOTATION_LINE = 5,
    KPTI_ANNOTATION_GENERATION = 6,
    KPTI_ANNOTATION_COLLECTED = 7,
    KPTI_ANNOTATION_UNCOLLECTABLE = 8,
    KPTI_ANNOTATION_THREAD = 9
};

/* A sequence. */
typedef struct kpti_perfetto_lane {
    int64_t last_ns; /* of the packet before; INT64_MAX: times are Unix times */
    char head[8];    /* its number, as every packet has it */
    char end[16];    /* that, and an event that ends a slice */
    uint8_t head_bytes;
    uint8_t end_bytes;   /* 0: the sequence has not begun */
    unsigned char *seen; /* a bit for each name: it is interned */
    uint32_t seen_bytes;
    uint64_t begun_id; /* of the call that began last */
    int64_t begun_ns;
} kpti_perfetto_lane;

typedef struct kpti_perfetto {
    kpti_writer base;
    kpti_perfetto_lane own; /* of the process's first sequence */
    kpti_perfetto_lane *lanes;
    uint32_t lane_capacity;
    uint64_t sequences;      /* of processes before this one */
    uint64_t uuids;          /* a number that is this process's: tracks are counted from there */
    uint64_t made_tracks;    /* of counters and loose spans */
    kpti_fragments events;   /* by name: a slice that begins; the note is the first line */
    kpti_fragments interned; /* by name: what tells a sequence what it means */
    kpti_spans spans;
    kpti_resumes resumes;
    kpti_task_tracks task_tracks;
    kpti_u64_map counters; /* by the key of their name: one more than its made track */
    kpti_u64_map threads;  /* by the system's number: one more than its own */
    uint32_t next_thread;  /* a number that no thread has */
} kpti_perfetto;

/* An event that is being written. */
typedef struct kpti_perfetto_event {
    char *packet;
    char *event;
} kpti_perfetto_event;

/* Begins an event of TYPE with room for ROOM bytes, and returns where its further fields go. */
char *kpti_perfetto_open(kpti_perfetto *writer, kpti_perfetto_lane *lane, int64_t ns, uint32_t type,
                         size_t room, kpti_perfetto_event *event);
void kpti_perfetto_close(kpti_perfetto *writer, const kpti_perfetto_event *event, char *end);

char *kpti_perfetto_annotate(char *at, uint32_t annotation, uint32_t kind, uint64_t value);

/* The sequence of a thread; NULL when there is no memory for one that did not come. */
kpti_perfetto_lane *kpti_perfetto_lane_of(kpti_perfetto *writer, uint32_t thread);

/* --- perfetto_tracks.c: what stands at the beginning of sequences and tracks ------------------- */

void kpti_perfetto_begin_process(kpti_perfetto *writer, const kpti_writer_options *options);
kpt_status kpti_perfetto_begin_thread(kpti_perfetto *writer, const kpt_thread *thread);
/* A track of the process, of values if it IS_COUNTER. Its uuid, by which events are put on it. */
uint64_t kpti_perfetto_make_track(kpti_perfetto *writer, kpt_str name, int is_counter);
/* The same in the track PARENT, 0: in none. */
uint64_t kpti_perfetto_make_track_in(kpti_perfetto *writer, uint64_t parent, kpt_str name);
/* The uuid of a thread's track. */
uint64_t kpti_perfetto_thread_track(const kpti_perfetto *writer, uint32_t thread);
/* A thread's number as a key of the map of threads, which can't hold the largest. */
static inline uint64_t kpti_perfetto_thread_key(uint64_t os_tid)
{
    return os_tid & INT64_MAX;
}
/* Begins a packet of a sequence, without a time, with room for a name; where its fields go. */
char *kpti_perfetto_open_packet(kpti_perfetto *writer, const kpti_perfetto_lane *lane,
                                char **packet);
/* The uuid of track NUMBER of those, from 0. */
uint64_t kpti_perfetto_made_track(const kpti_perfetto *writer, uint64_t number);

/* --- perfetto_notes.c: users' notes ------------------------------------------------------------ */

kpt_status kpti_perfetto_note(kpti_perfetto *writer, const kpt_activity *point,
                              const kpti_note *note);
/* The frame of BEGIN ends at NS; CALL, which may be NULL, ends there too. */
void kpti_perfetto_end_frame(kpti_perfetto *writer, kpti_perfetto_lane *lane, uint32_t begin,
                             int64_t ns, const kpt_activity *call);
/* --- perfetto_gpu.c: what GPUs did, once all threads came --------------------------------------- */

kpt_status kpti_perfetto_gpu(kpti_perfetto *writer);

/* What is left once all points came. */
kpt_status kpti_perfetto_rest(kpti_perfetto *writer);

/* --- perfetto_tasks.c: asyncio's tasks ---------------------------------------------------------- */

kpt_status kpti_perfetto_task_point(kpti_perfetto *writer, kpti_perfetto_lane *lane,
                                    const kpt_activity *point, const kpti_note *note);
/* A call has ended, which may be a resume. */
void kpti_perfetto_task_end(kpti_perfetto *writer, kpti_perfetto_lane *lane,
                            const kpt_activity *call);

#endif
