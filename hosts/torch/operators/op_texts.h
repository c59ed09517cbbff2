// op_texts.h: texts with a stable address: of operators, annotations and devices. The plugin identifies a text
// that it has read before by its address. Any thread may call; returned texts are never freed.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_OP_TEXTS_H
#define KPTI_HOSTS_TORCH_OPERATORS_OP_TEXTS_H

#include <ATen/record_function.h>

#include <string_view>

#include "abi/kpt.h"

namespace kpytrace
{

// The properties of a function that do not depend on the call.
struct FunctionTexts {
    kpt_str name{};
    kpt_str schema{};
    uint32_t inputs = UINT32_MAX; // number of inputs; no limit without a schema
    uint32_t outputs = UINT32_MAX;
    // The plugin's number for operators of this name, below its scope (op_tracers.cc); 0 if it was not asked for yet.
    // Read and written atomically.
    alignas(8) mutable uint64_t numbered = 0;
};

// The position of a function on a tape of the thread (execution_trace/tape_writer.h).
struct FunctionPlace {
    uint64_t forward_thread = 0;
    uint32_t scope = 0;
    uint32_t serial = 0; // the tape's serial; 0 if it is on none
    uint32_t at = 0;
};

// A function that a thread has called. It is one cache line.
struct alignas(64) Called {
    const char *key = nullptr; // the address of torch's text of an operator's name, or of our text
    uint64_t check = 0;        // verifies that the text at the key is still the same
    const FunctionTexts *texts = nullptr;
    uint32_t inputs = UINT32_MAX;
    uint32_t outputs = UINT32_MAX;
    bool has_schema = false; // its texts have a schema
    FunctionPlace place;
};
static_assert(sizeof(Called) == 64);

// Returns an entry that is valid until the thread's next call. The name's text may be FUNCTION's own, if there
// are too many names to keep.
Called &called_of(const at::RecordFunction &function);

// Returns the texts of an autograd node, or of a function of its engine. They are valid until the thread's next call.
const FunctionTexts &texts_of_node(std::string_view name);

// Returns the fields that all calls of FUNCTION on a thread have in common, and no others.
kpt_op common_of(const at::RecordFunction &function, const FunctionTexts &texts);

kpt_str device_text(c10::Device device);

// Call it before the first call of called_of.
void texts_watch();

// Called before a fork, so that the child's tables are consistent, and after it, in the parent and in the
// child.
void texts_hold();
void texts_release();

} // namespace kpytrace
#endif
