// inductor_frames.h: the frames that a line of torch's generated code stands for, as torch has them in its own
// tracebacks.
#ifndef KPTI_HOSTS_TORCH_TRACEBACK_INDUCTOR_FRAMES_H
#define KPTI_HOSTS_TORCH_TRACEBACK_INDUCTOR_FRAMES_H

#include "abi/kpt.h"

typedef struct _object PyObject;

namespace kpytrace
{

// While it lives, add_generated on the calling thread calls torch, if torch has generated any code. The GIL is
// held if PYTHON is set.
class AskingTorch
{
  public:
    explicit AskingTorch(bool python);
    ~AskingTorch();
    AskingTorch(const AskingTorch &) = delete;
    AskingTorch &operator=(const AskingTorch &) = delete;

  private:
    PyObject *function_ = nullptr;
    PyObject *outer_;
};

// Implements kpt_generated_fn. An exception is reported as unraisable, and that frame gets no generated frames.
void add_generated(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx);

} // namespace kpytrace
#endif
