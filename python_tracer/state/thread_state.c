#include "python_tracer/state/thread_state.h"

__thread kpti_thread *kpti_thread_self __attribute__((tls_model("initial-exec")));
