/* live_writer.h: a thread that writes the trace while the journal is recorded, so that close has little
 * left to do. It also prepares space in the journal for the next chunks, from open on, and unmaps the
 * journal's mappings at the end. A recording thread never waits for it.
 *
 * Once each thread was seen not busy after a time T, the journal has all records from before T, minus the
 * clock difference: a thread takes the timestamp of a record while it is busy. So the live writer can sort
 * those records as the writer at the end would.
 *
 * The live writer does not change the journal. If it fails, for example on a full disk, it removes its
 * file, and close writes the trace from the journal. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_LIVE_WRITER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_LIVE_WRITER_H

#include "execution_trace/output/trace_file.h"
#include "execution_trace/record/journal_recorder.h"

typedef struct kpti_et_live_writer kpti_et_live_writer;

/* Starts a live writer. RECORDER, whose journal was just opened, is borrowed until join, and the strings of
 * FILE until finish. Returns NULL if there is no memory or no thread. The caller calls finish, then clear,
 * then join. */
kpti_et_live_writer *kpti_et_live_writer_start(kpti_recorder *recorder, kpti_trace_file file);
/* Completes the file. Nothing is recorded any more, and the journal's head has its finish_ns. Returns 0 if
 * it failed; the caller then writes the file itself. */
int kpti_et_live_writer_finish(kpti_et_live_writer *live);
/* Unmaps WINDOWS soon, on its thread. The journal is closed. */
void kpti_et_live_writer_clear(kpti_et_live_writer *live, kpti_et_mapping *mappings);
/* Waits until the mappings are unmapped, and frees LIVE. */
void kpti_et_live_writer_join(kpti_et_live_writer *live);
/* Called in the child of a fork, which does not have the thread. The file belongs to the parent. */
void kpti_et_live_writer_forked(kpti_et_live_writer *live);

#endif
