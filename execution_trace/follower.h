/* follower.h: a thread that makes the trace of a journal while that is recorded, so that little is left to do at
 * its close; and room in the journal for what comes. It takes its time from nobody: a thread that records never
 * waits for it.
 *
 * What was recorded before a time is known to be in the journal once each thread was seen outside after that
 * time, since it takes the time of a record when it is inside; but for what its clock is behind. So all of it can
 * be put in order, as at the end.
 *
 * The journal stays as it is. Where the thread fails, as on a full disk, what it made is removed, and the file is
 * made at the end as if it had not been. */
#ifndef KPTI_ET_FOLLOWER_H
#define KPTI_ET_FOLLOWER_H

#include "recorder.h"
#include "trace_file.h"

typedef struct kpti_et_follower kpti_et_follower;

/* RECORDER, whose journal is open, and what FILE names are borrowed until finish. NULL: there is no memory, or no
 * thread. */
kpti_et_follower *kpti_et_follower_start(kpti_recorder *recorder, kpti_trace_file file);
/* Nothing is recorded any more, and the journal says so: completes the file, and ends. 0: it could not, and
 * somebody else must. */
int kpti_et_follower_finish(kpti_et_follower *f);
/* In the child of a fork, which has no such thread: the file is the parent's. */
void kpti_et_follower_forked(kpti_et_follower *f);

#endif
