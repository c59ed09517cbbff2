// module_scope.h: tracks which module's forward runs on a thread. While calls are followed, the function behind
// torch.nn.Module.__call__ is entered through ours (PyFunction_SetVectorcall).
//
// torch's global hooks of modules are not used: torch.compile traces them, guards that there are none, and so
// would compile a program again, or not at all. With our way, torch.compile finds the same function with the
// same code, and no Python frame is ours. In compiled code modules are not called, and their tensors belong to
// the module around them.
#ifndef KPTI_HOSTS_TORCH_MEMORY_MODULE_SCOPE_H
#define KPTI_HOSTS_TORCH_MEMORY_MODULE_SCOPE_H

#include <Python.h>

namespace kpytrace
{

// Follows calls of FUNCTION, whose first argument is the module. Returns true if FUNCTION is a Python function.
// thread: any. GIL: held. ownership: FUNCTION is kept until unfollow_modules. A repeated call does nothing.
bool follow_modules(PyObject *function);

// Later calls are not followed; running calls end normally. GIL: held. A repeated call does nothing.
void unfollow_modules();

} // namespace kpytrace
#endif
