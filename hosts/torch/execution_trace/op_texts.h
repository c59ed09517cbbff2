// op_texts.h: texts that stay where they are: of operators, annotations and devices. The plugin knows a text
// that it has seen by its address. Any thread; what is given out is never freed.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_TEXTS_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_TEXTS_H

#include <ATen/record_function.h>

#include "abi/kpt.h"

namespace kpytrace
{

// What there is to know of a function before it is called.
struct FunctionTexts {
    kpt_str name{};
    kpt_str schema{};
    uint32_t inputs = UINT32_MAX; // how many; all that there are without a schema
    uint32_t outputs = UINT32_MAX;
};

// Where a function is on a tape of the thread's (tape_writer.h).
struct FunctionPlace {
    uint64_t forward_thread = 0;
    uint32_t scope = 0;
    uint32_t serial = 0; // the tape's; 0: nowhere
    uint32_t at = 0;
};

// A function that a thread has called: one line of the cache.
struct alignas(64) Called {
    const char *key = nullptr; // an operator's: where torch has its name; else where we have it
    uint64_t check = 0;        // of what is at the key
    const FunctionTexts *texts = nullptr;
    uint32_t inputs = UINT32_MAX;
    uint32_t outputs = UINT32_MAX;
    bool has_schema = false; // its texts do
    FunctionPlace place;
};
static_assert(sizeof(Called) == 64);

// Good until the thread asks again. The name's text may be FUNCTION's own, where there are too many names to keep.
Called &called_of(const at::RecordFunction &function);

// What FUNCTION's calls on a thread have in common, as the plugin takes it; nothing else.
kpt_op common_of(const at::RecordFunction &function, const FunctionTexts &texts);

kpt_str device_text(c10::Device device);

// Before the first operator is asked for.
void texts_watch();

// Before a fork, so that the child has whole tables; after it, in the parent and in the child.
void texts_hold();
void texts_release();

} // namespace kpytrace
#endif
