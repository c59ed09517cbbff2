/* live_writer.h: a thread that makes the trace of a journal while that is recorded, so that little is left to do at
 * its close; and room in the journal for what comes, from its open on; and that gives the journal's memory back in
 * the end. It takes its time from nobody: a thread that records never waits for it.
 *
 * What was recorded before a time is known to be in the journal once each thread was seen outside after that
 * time, since it takes the time of a record when it is inside; but for what its clock is behind. So all of it can
 * be put in order, as at the end.
 *
 * The journal stays as it is. Where the thread fails, as on a full disk, what it made is removed, and the file is
 * made at the end as if it had not been. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_LIVE_WRITER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_LIVE_WRITER_H

#include "execution_trace/output/trace_file.h"
#include "execution_trace/record/journal_recorder.h"

typedef struct kpti_et_follower kpti_et_follower;

/* RECORDER, whose journal was opened just now, is borrowed until join, and what FILE names until finish. NULL: there
 * is no memory, or no thread. Each one is finished, then cleared, then joined. */
kpti_et_follower *kpti_et_follower_start(kpti_recorder *recorder, kpti_trace_file file);
/* Nothing is recorded any more, and the journal says so: completes the file. 0: it could not, and somebody else
 * must. */
int kpti_et_follower_finish(kpti_et_follower *f);
/* The journal is closed: WINDOWS are unmapped soon. */
void kpti_et_follower_clear(kpti_et_follower *f, kpti_et_window *windows);
/* Waits for that. */
void kpti_et_follower_join(kpti_et_follower *f);
/* In the child of a fork, which has no such thread: the file is the parent's. */
void kpti_et_follower_forked(kpti_et_follower *f);

#endif
