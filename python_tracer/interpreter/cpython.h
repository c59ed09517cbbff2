/* cpython.h: CPython, and the one place that asks which version it is. What differs between minors is
 * given one name here; no other file looks at PY_VERSION_HEX.
 *
 * Only public and "unstable" API of CPython is used; internal headers in raw_frame.h and struct_layouts.c alone. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_CPYTHON_H
#define KPTI_PYTHON_TRACER_INTERPRETER_CPYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#if PY_VERSION_HEX < 0x030A0000
#error "kpytrace needs CPython 3.10 or later"
#endif

#define KPTI_PYTHON_MINOR PY_MINOR_VERSION

/* sys.monitoring is there; before it PyEval_SetProfile does the work. */
#define KPTI_MONITORING (PY_VERSION_HEX >= 0x030C0000)

#ifdef Py_GIL_DISABLED
#define KPTI_FREE_THREADED 1
#else
#define KPTI_FREE_THREADED 0
#endif

/* Releases whose frames raw_frame.h knows from the inside; a pre-release's may be others. */
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030F0000 && !KPTI_FREE_THREADED && \
    PY_RELEASE_LEVEL == PY_RELEASE_LEVEL_FINAL
#if __has_include(<internal/pycore_frame.h>)
#define KPTI_KNOWN_FRAMES 1
#endif
#endif
#ifndef KPTI_KNOWN_FRAMES
#define KPTI_KNOWN_FRAMES 0
#endif
/* From 3.14 on they have asyncio's running task in the thread's state, which raw_frame.h reads as well. */
#define KPTI_TASK_IN_STATE (KPTI_KNOWN_FRAMES && PY_VERSION_HEX >= 0x030E0000)
/* CPython describes its own layouts, in _PyRuntime. */
#define KPTI_DESCRIBES_ITSELF (KPTI_KNOWN_FRAMES && PY_VERSION_HEX >= 0x030D0000)
/* The release that the backend is compiled for. */
#define KPTI_COMPILED_FOR ((unsigned long)PY_VERSION_HEX)
/* The newest release of this minor whose layouts are known to be those of its first. */
#if PY_VERSION_HEX >= 0x030E0000
#define KPTI_NEWEST_TESTED 0x030E00F0
#elif PY_VERSION_HEX >= 0x030D0000
#define KPTI_NEWEST_TESTED 0x030D09F0
#elif PY_VERSION_HEX >= 0x030C0000
#define KPTI_NEWEST_TESTED 0x030C0CF0
#else
#define KPTI_NEWEST_TESTED 0x030B0EF0
#endif
/* asyncio has tasks that begin within the call that makes them. */
#define KPTI_EAGER_TASKS (PY_VERSION_HEX >= 0x030C0000)
#if PY_VERSION_HEX >= 0x030D0000
#define kpti_raw_frame_code _PyFrame_GetCode
#define kpti_raw_frame_ip   instr_ptr
#else
#define kpti_raw_frame_code(frame) ((frame)->f_code)
#define kpti_raw_frame_ip          prev_instr
#endif
/* The frame that a thread is in, begun or not. */
#if PY_VERSION_HEX >= 0x030D0000
#define kpti_state_frame(state) ((state)->current_frame)
#else
#define kpti_state_frame(state) ((state)->cframe->current_frame)
#endif

/* A code object's slot for our function id. */
#if PY_VERSION_HEX >= 0x030C0000
#define kpti_code_extra_index PyUnstable_Eval_RequestCodeExtraIndex
#define kpti_code_extra_get   PyUnstable_Code_GetExtra
#define kpti_code_extra_set   PyUnstable_Code_SetExtra
#else
#define kpti_code_extra_index _PyEval_RequestCodeExtraIndex
#define kpti_code_extra_get   _PyCode_GetExtra
#define kpti_code_extra_set   _PyCode_SetExtra
#endif

/* The qualified name, borrowed; 3.10's code objects have none. */
static inline PyObject *kpti_code_qualname(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
    return code->co_qualname;
#else
    return code->co_name;
#endif
}

/* The names of its local variables, arguments first: a new reference. */
static inline PyObject *kpti_code_varnames(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyCode_GetVarnames(code);
#else
    Py_INCREF(code->co_varnames);
    return code->co_varnames;
#endif
}

/* The local variable NAME of a frame: a new reference, or NULL without an exception. */
static inline PyObject *kpti_frame_local(PyFrameObject *frame, const char *name)
{
    PyObject *locals = PyObject_GetAttrString((PyObject *)frame, "f_locals");
    PyObject *value = locals ? PyMapping_GetItemString(locals, name) : NULL;
    Py_XDECREF(locals);
    if (!value) PyErr_Clear();
    return value;
}

/* Whether a str can be read as it lies; 3.12's always can. */
#if PY_VERSION_HEX >= 0x030C0000
#define kpti_unicode_is_ready(text) ((void)(text), 1)
#else
#define kpti_unicode_is_ready(text) PyUnicode_IS_READY(text)
#endif

/* Where the instruction at OFFSET, in bytes, came from; lines and columns are 0 and -1 where unknown. */
static inline void kpti_code_position(PyCodeObject *code, int offset, int lines[2], int columns[2])
{
    lines[0] = lines[1] = 0;
    columns[0] = columns[1] = -1;
#if PY_VERSION_HEX >= 0x030B0000
    if (PyCode_Addr2Location(code, offset, &lines[0], &columns[0], &lines[1], &columns[1])) return;
#endif
    lines[0] = lines[1] = PyCode_Addr2Line(code, offset);
}

/* Code that may stop and go on later. */
#define KPTI_CAN_RESUME (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)
/* Of that, what a task may run. */
#define KPTI_IS_COROUTINE (CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR)

/* What a dict has at KEY: a new reference, or NULL without an exception. */
static inline PyObject *kpti_dict_get(PyObject *dict, PyObject *key)
{
    PyObject *value;
#if PY_VERSION_HEX >= 0x030D0000
    if (PyDict_GetItemRef(dict, key, &value) < 0) PyErr_Clear();
#else
    value = PyDict_GetItemWithError(dict, key);
    Py_XINCREF(value);
    if (!value) PyErr_Clear();
#endif
    return value;
}

/* What changes with each change of the thread state's own dict, and differs between threads; 0: nothing does. */
static inline uint64_t kpti_state_dict_version(void)
{
#if PY_VERSION_HEX < 0x030C0000
    PyObject *dict = PyThreadState_Get()->dict;
    return dict ? ((PyDictObject *)dict)->ma_version_tag : 0;
#else
    return 0;
#endif
}

/* Whether kpti_code_version distinguishes code objects, all but the last of 2^32. */
#define KPTI_CODES_HAVE_VERSIONS (PY_VERSION_HEX >= 0x030C0000)

/* A number that no other code object of the interpreter has or had, also no dead one at its address; 0 if there is
 * none. May be read without the GIL while the code runs. */
static inline uint32_t kpti_code_version(const PyCodeObject *code)
{
#if KPTI_CODES_HAVE_VERSIONS
    return code->co_version;
#else
    (void)code;
    return 0;
#endif
}

/* The instruction of a frame, in bytes; negative: it has not begun. */
static inline int kpti_frame_offset(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
#endif
}

/* The code that a frame runs, borrowed from it. */
static inline PyCodeObject *kpti_frame_code(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    return code;
#else
    return frame->f_code;
#endif
}

/* The global variables of a frame: a new reference. */
static inline PyObject *kpti_frame_globals(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetGlobals(frame);
#else
    Py_INCREF(frame->f_globals);
    return frame->f_globals;
#endif
}

/* Up to 3.10 a frame is an object; since then one is made for who asks. */
#define KPTI_FRAMES_ARE_OBJECTS (PY_VERSION_HEX < 0x030B0000)

#if PY_VERSION_HEX >= 0x030D0000
#define kpti_python_is_finalizing Py_IsFinalizing
#else
#define kpti_python_is_finalizing _Py_IsFinalizing
#endif

/* Whether the interpreter is on its way out: nothing of Python may be touched then. One that is still
 * importing site runs, whatever 3.15 says of it. */
static inline int kpti_python_is_ending(void)
{
    if (kpti_python_is_finalizing()) return 1;
    return !Py_IsInitialized() && !PyGILState_GetThisThreadState();
}

/* The thread state that the calling thread has attached, NULL without one: then it holds no GIL.
 * PyGILState_Check does not do: it says yes to everybody from the first sub-interpreter on. */
static inline PyThreadState *kpti_attached(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030C0000
    return _PyThreadState_UncheckedGet();
#else
    /* Up to 3.11 that is the state of whoever holds the GIL. A thread in a sub-interpreter holds it
     * with another one than it is known by; only where there are any it is looked at more closely. */
    PyThreadState *holder = _PyThreadState_UncheckedGet();
    if (!holder || holder == PyGILState_GetThisThreadState()) return holder;
    if (!PyInterpreterState_Next(PyInterpreterState_Head())) return NULL;
    return holder->thread_id == PyThread_get_thread_ident() ? holder : NULL;
#endif
}

/* Whether the calling thread may touch the interpreter that we trace, the main one, as it is. */
static inline int kpti_may_touch_python(void)
{
    PyThreadState *attached = kpti_python_is_ending() ? NULL : kpti_attached();
    return attached && attached->interp == PyInterpreterState_Main();
}

/* Whether it runs in another interpreter. */
static inline int kpti_in_sub_interpreter(void)
{
    PyThreadState *attached = kpti_attached();
    return attached && attached->interp != PyInterpreterState_Main();
}

/* A lock that threads with a thread state may wait for. The GIL is one. */
#if KPTI_FREE_THREADED
typedef PyMutex kpti_python_mutex;
#define kpti_python_lock   PyMutex_Lock
#define kpti_python_unlock PyMutex_Unlock
#else
typedef struct kpti_python_mutex {
    int unused;
} kpti_python_mutex;
#define kpti_python_lock(mutex)   ((void)(mutex))
#define kpti_python_unlock(mutex) ((void)(mutex))
#endif

#endif
