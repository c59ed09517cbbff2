/* recording_source.h: the input of a delivery: the tracer of a session, or the file that its stream was written
 * to. The caller is inside the session and holds control. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_RECORDING_SOURCE_H
#define KPTI_HOSTS_STANDALONE_SESSION_RECORDING_SOURCE_H

#include "hosts/standalone/session/session_state.h"
#include "writers/format/writer_options.h"

typedef struct kpti_source {
    kpt_tracer tracer;
    const kpti_notes *notes;
    const kpti_gpu_log *gpu;
    int loaded;
    int may_have_operators;
    kpti_notes copied_notes;
    kpti_gpu_log loaded_gpu;
    kpti_kpt_reader reader;
    const kpti_kpt_reader *file;     /* this one, or the session's; NULL if it is in memory */
    const kpti_session_watch *watch; /* can end the delivery; NULL if nothing may */
} kpti_source;

/* After KPT_OK only, the caller calls kpti_source_end. WATCH may be NULL. It can end a delivery from an opened
 * file, since the file can be read again. The program's own recording is always delivered to its end. */
kpt_status kpti_source_begin(kpti_session *session, const kpti_session_watch *watch,
                             kpti_source *from, kpti_session_error *error);
void kpti_source_end(kpti_source *from);

/* What a delivery has beside the calls and the points of notes. */
typedef enum kpti_extent {
    KPTI_CALLS_ONLY = 0,
    KPTI_WITH_RANGES = 1, /* the host's ranges, and calls that would cross them in parts */
    KPTI_WITH_INPUTS = 2  /* the same, and the inputs of the host's operators */
} kpti_extent;

/* Returns what a writer of FORMAT takes. */
static inline kpti_extent kpti_extent_of(const kpti_format *format)
{
    return format->has_inputs ? KPTI_WITH_INPUTS : KPTI_WITH_RANGES;
}

/* Delivers the whole recording to SINK. */
kpt_status kpti_source_deliver(const kpti_source *from, uint32_t order, kpti_extent extent,
                               kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error);

/* Passes all chunks and tables of the recording to PUT. */
kpt_status kpti_source_chunks(const kpti_source *from, kpt_chunk_fn put, void *put_ctx,
                              kpti_session_error *error);

/* Walks the operators of the recording, with the launches of its GPU activity. The caller frees WALK, also after a
 * failure. */
kpt_status kpti_source_walk(const kpti_source *from, kpti_operator_walk *walk,
                            kpti_session_error *error);
/* The same if a writer of FORMAT uses the walk; otherwise WALK is empty. */
kpt_status kpti_source_walk_for(const kpti_source *from, const kpti_format *format,
                                kpti_operator_walk *walk, kpti_session_error *error);

/* Opens the .kpt file PATH and makes a tracer from it. Its notes go to NOTES, its GPU activity to GPU. READER
 * must be unmapped in any case, after the tracer and GPU are freed. */
kpt_status kpti_session_load(kpti_session *session, const char *path, kpti_kpt_reader *reader,
                             kpti_notes *notes, kpti_gpu_log *gpu, kpt_tracer *tracer,
                             kpti_session_error *error);

#endif
