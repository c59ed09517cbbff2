// op_marks.h: marks the positions of torch's operators and annotations in the stream of Python calls. Its
// callbacks are registered only while a tracer records. A tracer that records no calls of a thread ignores the
// marks.
#ifndef KPTI_HOSTS_TORCH_PROFILER_OP_MARKS_H
#define KPTI_HOSTS_TORCH_PROFILER_OP_MARKS_H

#include "abi/kpt.h"

namespace kpytrace
{

// Marks annotations as spans, which calls must not cross, and also what torch._C._profiler._RecordFunctionFast
// begins and ends. With POINTS, operators are marked as well, so that the calls around them are known. One
// tracer at a time: the last call of this function selects it.
void begin_marks(const kpt_tracer &tracer, bool points);

// Marks one point at the calling thread's position.
void mark_point(const kpt_tracer &tracer);

// When it returns, no mark of TRACER is being made, and none will be. A repeated call does nothing.
void end_marks(const kpt_tracer &tracer);

} // namespace kpytrace
#endif
