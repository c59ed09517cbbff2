// module_scope.h: which module's forward runs on a thread. While it is followed, the function behind
// torch.nn.Module.__call__ is entered through ours (PyFunction_SetVectorcall).
//
// Not by torch's global hooks of modules: torch.compile traces those, guards that there are none, and so would
// compile a program again, or not at all. Here it sees the same function with the same code, and no frame of
// Python's is ours. In compiled code modules are not called: their tensors belong to the module around it.
#ifndef KPTI_HOSTS_TORCH_MEMORY_MODULE_SCOPE_H
#define KPTI_HOSTS_TORCH_MEMORY_MODULE_SCOPE_H

#include <Python.h>

namespace kpytrace
{

// Follows calls of FUNCTION, whose first argument is the module. Returns whether FUNCTION is a Python function.
// thread: any. GIL: held. ownership: FUNCTION is kept until unfollow_modules. Again is no change.
bool follow_modules(PyObject *function);

// From now on calls are not followed; those that run end as they would. GIL: held. Again is no change.
void unfollow_modules();

} // namespace kpytrace
#endif
