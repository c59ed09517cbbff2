// inductor_frames.h: the frames that a line of code by torch's compiler stands for, as torch itself has them
// in its tracebacks.
#ifndef KPTI_HOSTS_TORCH_TRACEBACK_INDUCTOR_FRAMES_H
#define KPTI_HOSTS_TORCH_TRACEBACK_INDUCTOR_FRAMES_H

#include "abi/kpt.h"

typedef struct _object PyObject;

namespace kpytrace
{

// While it lives, the calling thread's add_generated asks torch, if that has generated any code. The GIL
// is held if there is a PYTHON.
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

// A kpt_generated_fn. An exception is reported as unraisable, and that frame has none.
void add_generated(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx);

} // namespace kpytrace
#endif
