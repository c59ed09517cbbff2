/* perfetto_state.h: the state of the Perfetto writer, which its files share.
 *
 * Each thread is a packet sequence. Its first packets clear the state, make the thread's track the default, and define
 * a clock whose times are nanoseconds since the previous packet. A name is interned in the sequence when it is first
 * used. So a call is two packets of about eleven and fifteen bytes. The first sequence of a process has everything
 * that belongs to no thread, with Unix times. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_STATE_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_STATE_H

#include "abi/kpt_text.h"
#include "core/base/u64_map.h"
#include "writers/annotations/task_resumes.h"
#include "writers/annotations/task_tracks.h"
#include "writers/encode/escaped_strings.h"
#include "writers/encode/proto.h"
#include "writers/format/format.h"
#include "writers/format/note_spans.h"
#include "writers/perfetto/perfetto_wire.h"

/* Longer names are cut, and longer arguments left out: no viewer displays them, and an event must fit into the
 * buffer. */
enum { KPTI_PERFETTO_MAX_NAME = 16 * 1024, KPTI_PERFETTO_MAX_ARGS = 64 * 1024 };
/* Most bytes of an event without names and arguments. */
enum { KPTI_PERFETTO_MAX_REST = 1024 };

/* Annotations of some calls, by their number in each sequence. */
enum {
    KPTI_ANNOTATION_BEGAN_BEFORE = 1,
    KPTI_ANNOTATION_ENDED_BY_STOP = 2,
    KPTI_ANNOTATION_CLAMPED = 3,
    KPTI_ANNOTATION_RECOVERED = 4,
    KPTI_ANNOTATION_LINE = 5,
    KPTI_ANNOTATION_GENERATION = 6,
    KPTI_ANNOTATION_COLLECTED = 7,
    KPTI_ANNOTATION_UNCOLLECTABLE = 8,
    KPTI_ANNOTATION_THREAD = 9,
    KPTI_ANNOTATION_CONTINUED = 20 /* after kpti_perfetto_intern_operators */
};

/* autograd's last node on a thread. */
typedef struct kpti_perfetto_node {
    uint64_t id;        /* 0: the node has ended */
    uint64_t parent_id; /* of the engine's operator around it */
    uint64_t sequence_plus_1;
    uint64_t forward_thread;
    uint32_t
        forward; /* number of its forward function among the interned texts; 0: no walk was made */
} kpti_perfetto_node;

/* What perfetto_operators.h keeps of a sequence with nodes of autograd. */
typedef struct kpti_perfetto_nodes {
    kpti_perfetto_node node;
    kpti_u64_map forwards; /* interned forward functions: number by key of the text */
    uint32_t forward_count;
} kpti_perfetto_nodes;

/* So many names of a sequence need no bits of their own: many threads call few functions. */
enum { KPTI_PERFETTO_FEW_NAMES = 4 };

/* A packet sequence. There may be very many, so a struct is small. */
typedef struct kpti_perfetto_track {
    int64_t last_ns; /* time of the previous packet; INT64_MAX: times are Unix times */
    /* the sequence's number, which is a part of every packet, and an event that ends a slice */
    char end[16];
    uint8_t head_bytes;    /* of the number */
    uint8_t end_bytes;     /* of both; 0: the sequence has not begun */
    uint8_t has_operators; /* the categories and annotations of operators are interned */
    uint32_t seen_bytes;   /* 0: few is valid, otherwise bits */
    union {
        uint32_t few[KPTI_PERFETTO_FEW_NAMES]; /* interned names + 1; 0: none */
        unsigned char *bits;                   /* bit set: the name is interned */
    } seen;
    uint64_t begun_id; /* id of the call that began last */
    int64_t begun_ns;
    kpti_perfetto_nodes *nodes; /* NULL: none yet */
} kpti_perfetto_track;

enum { KPTI_PERFETTO_BLOCK = 256 };

typedef struct kpti_perfetto {
    kpti_writer base;
    kpti_perfetto_track own; /* the process's own sequence */
    kpti_perfetto_track *
        *track_blocks; /* KPTI_PERFETTO_BLOCK sequences each, by thread; NULL: none of them */
    uint32_t block_capacity;
    uint64_t sequences;   /* used by earlier processes */
    uint64_t uuids;       /* base for the uuids of this process's tracks */
    uint64_t made_tracks; /* tracks of counters, loose spans, tasks and GPUs */
    kpti_fragments
        events; /* by name: the begin of a slice; the note is the first line, or the scope of an operator */
    kpti_fragments interned; /* by name: the data that interns it in a sequence */
    kpti_spans spans;
    kpti_resumes resumes;
    kpti_task_tracks task_tracks;
    kpti_u64_map counters; /* by key of the name: number of its made track + 1 */
    kpti_u64_map
        threads; /* by OS thread id: index of the thread + 1; only if there is GPU activity */
    uint32_t next_thread; /* an index that no thread has */
} kpti_perfetto;

#endif
