/* cpython.h: CPython, and the only file that checks its version. Differences between minors get one name
 * here; no other file reads PY_VERSION_HEX.
 *
 * Only public and "unstable" API of CPython is used, except in frame_structs.h and struct_layouts.c, which
 * include internal headers. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_CPYTHON_H
#define KPTI_PYTHON_TRACER_INTERPRETER_CPYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#if PY_VERSION_HEX < 0x030A0000
#error "kpytrace needs CPython 3.10 or later"
#endif

#define KPTI_PYTHON_MINOR PY_MINOR_VERSION

/* sys.monitoring exists; before it PyEval_SetProfile is used. */
#define KPTI_MONITORING (PY_VERSION_HEX >= 0x030C0000)

#ifdef Py_GIL_DISABLED
#define KPTI_FREE_THREADED 1
#else
#define KPTI_FREE_THREADED 0
#endif

/* Releases whose frame layout raw_frame.h knows. A pre-release may have another layout. */
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030F0000 && !KPTI_FREE_THREADED && \
    PY_RELEASE_LEVEL == PY_RELEASE_LEVEL_FINAL
#if __has_include(<internal/pycore_frame.h>)
#define KPTI_KNOWN_FRAMES 1
#endif
#endif
#ifndef KPTI_KNOWN_FRAMES
#define KPTI_KNOWN_FRAMES 0
#endif
/* From 3.14 on these releases have asyncio's running task in the thread state, which raw_frame.h reads too. */
#define KPTI_TASK_IN_STATE (KPTI_KNOWN_FRAMES && PY_VERSION_HEX >= 0x030E0000)
/* CPython describes its own layouts in _PyRuntime. */
#define KPTI_DESCRIBES_ITSELF (KPTI_KNOWN_FRAMES && PY_VERSION_HEX >= 0x030D0000)
/* The release that the backend is compiled for. */
#define KPTI_COMPILED_FOR ((unsigned long)PY_VERSION_HEX)
/* The newest release of this minor whose layouts are known to be the same as in its first release. */
#if PY_VERSION_HEX >= 0x030E0000
#define KPTI_NEWEST_TESTED 0x030E00F0
#elif PY_VERSION_HEX >= 0x030D0000
#define KPTI_NEWEST_TESTED 0x030D09F0
#elif PY_VERSION_HEX >= 0x030C0000
#define KPTI_NEWEST_TESTED 0x030C0CF0
#else
#define KPTI_NEWEST_TESTED 0x030B0EF0
#endif
/* A pending exception is one object. */
#define KPTI_WHOLE_EXCEPTIONS (PY_VERSION_HEX >= 0x030C0000)
/* asyncio has tasks that begin within the call that makes them. */
#define KPTI_EAGER_TASKS (PY_VERSION_HEX >= 0x030C0000)
#if PY_VERSION_HEX >= 0x030D0000
#define kpti_raw_frame_code _PyFrame_GetCode
#define kpti_raw_frame_ip   instr_ptr
#else
#define kpti_raw_frame_code(frame) ((frame)->f_code)
#define kpti_raw_frame_ip          prev_instr
#endif
/* The current frame of a thread, begun or not. */
#if PY_VERSION_HEX >= 0x030D0000
#define kpti_state_frame(state) ((state)->current_frame)
#else
#define kpti_state_frame(state) ((state)->cframe->current_frame)
#endif

/* The slot of a code object for our function id. */
#if PY_VERSION_HEX >= 0x030C0000
#define kpti_code_extra_index PyUnstable_Eval_RequestCodeExtraIndex
#define kpti_code_extra_get   PyUnstable_Code_GetExtra
#define kpti_code_extra_set   PyUnstable_Code_SetExtra
#else
#define kpti_code_extra_index _PyEval_RequestCodeExtraIndex
#define kpti_code_extra_get   _PyCode_GetExtra
#define kpti_code_extra_set   _PyCode_SetExtra
#endif

/* Returns the qualified name, borrowed. 3.10's code objects have none. */
static inline PyObject *kpti_code_qualname(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
    return code->co_qualname;
#else
    return code->co_name;
#endif
}

/* Returns the names of the local variables, arguments first, a new reference. */
static inline PyObject *kpti_code_varnames(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyCode_GetVarnames(code);
#else
    Py_INCREF(code->co_varnames);
    return code->co_varnames;
#endif
}

/* Returns the local variable NAME, a str, of a frame, a new reference, or NULL without an exception. Up to 3.11 this makes
 * a dict of all local variables. */
static inline PyObject *kpti_frame_local(PyFrameObject *frame, PyObject *name)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *value = PyFrame_GetVar(frame, name);
#else
    PyObject *locals = PyObject_GetAttrString((PyObject *)frame, "f_locals");
    PyObject *value = locals ? PyObject_GetItem(locals, name) : NULL;
    Py_XDECREF(locals);
#endif
    if (!value) PyErr_Clear();
    return value;
}

/* Whether the characters of a str can be read directly; from 3.12 on they always can. */
#if PY_VERSION_HEX >= 0x030C0000
#define kpti_unicode_is_ready(text) ((void)(text), 1)
#else
#define kpti_unicode_is_ready(text) PyUnicode_IS_READY(text)
#endif

/* Finds the source position of the instruction at OFFSET, in bytes. Unknown lines are 0 and columns -1. */
static inline void kpti_code_position(PyCodeObject *code, int offset, int lines[2], int columns[2])
{
    lines[0] = lines[1] = 0;
    columns[0] = columns[1] = -1;
#if PY_VERSION_HEX >= 0x030B0000
    if (PyCode_Addr2Location(code, offset, &lines[0], &columns[0], &lines[1], &columns[1])) return;
#endif
    lines[0] = lines[1] = PyCode_Addr2Line(code, offset);
}

/* Code that can be suspended and resumed. */
#define KPTI_CAN_RESUME (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)
/* The part of it that a task may run. */
#define KPTI_IS_COROUTINE (CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR)

/* Returns the value of KEY in a dict, a new reference, or NULL without an exception. */
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

/* Returns a number that changes with each change of the thread state's own dict and differs between
 * threads, or 0 if there is none. */
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

/* Returns a number that no other code object of the interpreter has or had, not even a dead one at the same
 * address; 0 if there is none. May be read without the GIL while the code runs. */
static inline uint32_t kpti_code_version(const PyCodeObject *code)
{
#if KPTI_CODES_HAVE_VERSIONS
    return code->co_version;
#else
    (void)code;
    return 0;
#endif
}

/* Returns the version of TYPE, which no other type of the interpreter has or had, or 0 if there is none. The interpreter
 * assigns it when an attribute is looked up; from 3.12 on this function does. It runs no Python. */
static inline uint32_t kpti_type_version(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030C0000
    if (!type->tp_version_tag) (void)PyUnstable_Type_AssignVersionTag(type);
#endif
    return type->tp_version_tag;
}

/* Returns the offset of a frame's instruction in bytes. Negative: the frame has not begun. */
static inline int kpti_frame_offset(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    return frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
#endif
}

/* Returns the code that a frame runs, borrowed from the frame. */
static inline PyCodeObject *kpti_frame_code(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    PyCodeObject *code = PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame holds a reference */
    return code;
#else
    return frame->f_code;
#endif
}

/* Returns the global variables of a frame, a new reference. */
static inline PyObject *kpti_frame_globals(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetGlobals(frame);
#else
    Py_INCREF(frame->f_globals);
    return frame->f_globals;
#endif
}

/* Up to 3.10 a frame is an object; since then a frame object is made on request. */
#define KPTI_FRAMES_ARE_OBJECTS (PY_VERSION_HEX < 0x030B0000)

#if PY_VERSION_HEX >= 0x030D0000
#define kpti_python_is_finalizing Py_IsFinalizing
#else
#define kpti_python_is_finalizing _Py_IsFinalizing
#endif

/* Whether the interpreter is being finalized; no Python object may be touched then. An interpreter that is
 * still importing site is running, although 3.15 reports it as not initialized. */
static inline int kpti_python_is_ending(void)
{
    if (kpti_python_is_finalizing()) return 1;
    return !Py_IsInitialized() && !PyGILState_GetThisThreadState();
}

/* Returns the thread state that the calling thread has attached, or NULL if it has none and so holds no
 * GIL. PyGILState_Check can't be used: once there is a sub-interpreter, it returns 1 for every thread. */
static inline PyThreadState *kpti_attached(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030C0000
    return _PyThreadState_UncheckedGet();
#else
    /* Up to 3.11 this is the state of the thread that holds the GIL. A thread in a sub-interpreter holds
     * the GIL with another state than PyGILState_GetThisThreadState returns. The thread id is compared only
     * if there are sub-interpreters. */
    PyThreadState *holder = _PyThreadState_UncheckedGet();
    if (!holder || holder == PyGILState_GetThisThreadState()) return holder;
    if (!PyInterpreterState_Next(PyInterpreterState_Head())) return NULL;
    return holder->thread_id == PyThread_get_thread_ident() ? holder : NULL;
#endif
}

/* Whether the calling thread may touch the main interpreter, the one that we trace, without further steps. */
static inline int kpti_may_touch_python(void)
{
    PyThreadState *attached = kpti_python_is_ending() ? NULL : kpti_attached();
    return attached && attached->interp == PyInterpreterState_Main();
}

/* Whether the calling thread runs in a sub-interpreter. */
static inline int kpti_in_sub_interpreter(void)
{
    PyThreadState *attached = kpti_attached();
    return attached && attached->interp != PyInterpreterState_Main();
}

/* A lock that threads with a thread state may wait for. With a GIL no lock is needed. */
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
