// op_marks.h: where torch's operators and annotations are in the stream of Python calls, told by callbacks
// that are there only while a tracer records. A tracer that records no calls of a thread ignores them.
#ifndef KPTI_HOSTS_TORCH_PROFILER_OP_MARKS_H
#define KPTI_HOSTS_TORCH_PROFILER_OP_MARKS_H

#include "abi/kpt.h"

namespace kpytrace
{

// Annotations are marked as spans, which calls must not cross, and so is what torch._C._profiler._RecordFunctionFast
// begins and ends; with POINTS, operators as well, so that
// the calls around them are known. One tracer at a time; the last to begin is it.
void begin_marks(const kpt_tracer &tracer, bool points);

// Marks one point, where the calling thread is.
void mark_point(const kpt_tracer &tracer);

// No mark of TRACER is made from now on, and none is being made. Again is no change.
void end_marks(const kpt_tracer &tracer);

} // namespace kpytrace
#endif
