#include "python_tracer/hooks/asyncio_tasks.h"

#include "python_tracer/hooks/asyncio_task_table.h"
#include "python_tracer/hooks/caller_location.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/raw_frame.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"

/* Objects of asyncio, read once the program has imported it. All of them are written in C. */
static struct {
    _Atomic int known;
    PyObject *running_loop; /* its function, which takes no arguments */
    PyObject *current;      /* a dict of tasks by loop, or, if hidden, a function of the loop */
    PyObject *type;         /* Task */
    PyObject *get_name;     /* the method of Task itself */
} asyncio;

static kpti_python_mutex mutex; /* held while asyncio is looked up */
static _Atomic uint32_t last_key;

uint32_t kpti_tasks_new_key(void)
{
    return atomic_fetch_add(&last_key, 1) + 1;
}

void kpti_tasks_forget(void)
{
    kpti_task_table_forget();
    memset(&asyncio, 0, sizeof asyncio);
    mutex = (kpti_python_mutex){0};
}

void kpti_tasks_release(void)
{
    kpti_task_table_release();
}

/* --- asyncio ---------------------------------------------------------------------------------- */

/* Whether asyncio is imported. Its objects are looked up once. */
static int find_asyncio(void)
{
    PyObject *name;
    PyObject *module;
    if (atomic_load_explicit(&asyncio.known, memory_order_acquire)) return 1;
    name = PyUnicode_FromString("_asyncio");
    module = name ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    if (module) {
        PyObject *loop = PyObject_GetAttrString(module, "_get_running_loop");
        PyObject *current = PyObject_GetAttrString(module, "_current_tasks");
        PyObject *type = PyObject_GetAttrString(module, "Task");
        PyErr_Clear();
        if (!current) current = PyObject_GetAttrString(module, "current_task");
        kpti_python_lock(&mutex);
        if (!asyncio.known && loop && current && type && PyCFunction_CheckExact(loop) &&
            PyCFunction_GetFlags(loop) == METH_NOARGS) {
            asyncio.running_loop = loop; /* kept forever: they belong to the module */
            asyncio.current = current;
            asyncio.type = type;
            asyncio.get_name = PyObject_GetAttrString(type, "get_name");
            atomic_store_explicit(&asyncio.known, 1, memory_order_release);
            loop = current = type = NULL;
        }
        kpti_python_unlock(&mutex);
        Py_XDECREF(loop);
        Py_XDECREF(current);
        Py_XDECREF(type);
        Py_DECREF(module);
    }
    PyErr_Clear();
    return atomic_load_explicit(&asyncio.known, memory_order_acquire);
}

/* Returns a new reference to the loop that runs on the calling thread, or NULL without an exception. The
 * caller has found asyncio. */
static PyObject *ask_loop(void)
{
    const PyCFunctionObject *function = (PyCFunctionObject *)asyncio.running_loop;
    PyObject *loop = function->m_ml->ml_meth(function->m_self, NULL); /* no hook may trace this */
    if (!loop) PyErr_Clear();
    if (loop == Py_None) Py_CLEAR(loop);
    return loop;
}

/* The same with a cache. Up to 3.11 each query makes asyncio ask the system for the process id. asyncio
 * keeps the loop alive in the thread state's dict, which changes seldom, so the query is repeated only
 * after the dict has changed. */
static PyObject *running_loop(kpti_thread *thread)
{
    const uint64_t version = kpti_state_dict_version();
    PyObject *loop;
    if (version && version == thread->loop_version) {
        Py_XINCREF(thread->loop);
        return thread->loop;
    }
    loop = ask_loop();
    thread->loop = loop;
    thread->loop_version = version;
    return loop;
}

/* Returns a new reference to the task that runs on THREAD, or NULL without an exception. The caller has
 * found asyncio. */
static PyObject *ask_asyncio(kpti_thread *thread)
{
    PyObject *loop = running_loop(thread);
    PyObject *task = NULL;
    if (!loop) return NULL;
    task = PyDict_CheckExact(asyncio.current) ? kpti_dict_get(asyncio.current, loop)
                                              : PyObject_CallOneArg(asyncio.current, loop);
    if (!task) PyErr_Clear();
    Py_DECREF(loop);
    if (task == Py_None) Py_CLEAR(task);
    return task;
}

static PyObject *running_task(kpti_thread *thread)
{
    PyObject *task = NULL;
    if (!kpti_raw_running_task(PyThreadState_Get(), &task)) return ask_asyncio(thread);
    Py_XINCREF(task);
    return task;
}

/* Returns TEXT as UTF-8, borrowed from TEXT. If TEXT can't be encoded, the result is borrowed from *BYTES,
 * a new reference, with replacement characters. */
static kpt_str as_utf8(PyObject *text, PyObject **bytes)
{
    Py_ssize_t size = 0;
    const char *data;
    *bytes = NULL;
    if (!text || !PyUnicode_Check(text)) return (kpt_str){NULL, 0};
    data = PyUnicode_AsUTF8AndSize(text, &size);
    if (!data) {
        PyErr_Clear();
        *bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
        if (*bytes) (void)PyBytes_AsStringAndSize(*bytes, (char **)&data, &size);
    }
    return (kpt_str){data, (uint64_t)size};
}

/* --- names ------------------------------------------------------------------------------------ */

/* Storage for a task's name as UTF-8, unless the task's own str holds it. */
typedef struct task_name {
    PyObject *object; /* owned; NULL: not made */
    PyObject *bytes;  /* owned; NULL: not needed */
    char digits[32];
} task_name;

/* The objects that a task refers to and that may be its name. */
typedef struct candidates {
    PyObject *last;
    uint32_t count;
} candidates;

static int note_candidate(PyObject *object, void *found)
{
    candidates *c = found;
    if (!PyUnicode_Check(object) && !PyLong_CheckExact(object)) return 0;
    c->last = object;
    c->count++;
    return 0;
}

/* Returns the name of a task as stored in the task, borrowed: a str, or from 3.12 on a number until the
 * name is first read. Reading the name makes a str, which takes longer than everything else here. The
 * collector's tp_traverse visits the name. Returns NULL for a subclass of Task, and if tp_traverse visits
 * another object that may be a name. */
static PyObject *unasked_name(PyObject *task)
{
    candidates found = {NULL, 0};
    if (KPTI_FREE_THREADED || (PyObject *)Py_TYPE(task) != asyncio.type) return NULL;
    (void)Py_TYPE(task)->tp_traverse(task, note_candidate, &found);
    return found.count == 1 ? found.last : NULL;
}

/* Returns "Task-12", as Task makes it from NUMBER, or an empty string if NUMBER is not one of Task's. */
static kpt_str numbered_name(PyObject *number, char digits[32])
{
    static const char prefix[] = "Task-";
    char *const end = digits + 32;
    char *at = end;
    uint64_t rest = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) return (kpt_str){NULL, 0};
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    at -= sizeof prefix - 1;
    memcpy(at, prefix, sizeof prefix - 1);
    return (kpt_str){at, (uint64_t)(end - at)};
}

/* Reads the name with Task's own method, or, for a task written in Python, from its dict. The overrides of
 * subclasses are Python code, which must not run here. */
static PyObject *ask_name(PyObject *task)
{
    PyObject *name = NULL;
    if (PyObject_TypeCheck(task, (PyTypeObject *)asyncio.type)) {
        name = PyObject_CallOneArg(asyncio.get_name, task);
    } else {
        PyObject *dict = PyObject_GenericGetDict(task, NULL);
        PyObject *key = dict ? PyUnicode_FromString("_name") : NULL;
        if (key) name = kpti_dict_get(dict, key);
        Py_XDECREF(key);
        Py_XDECREF(dict);
    }
    if (!name) PyErr_Clear();
    return name;
}

static kpt_str name_of(PyObject *task, task_name *name)
{
    PyObject *found = unasked_name(task);
    name->object = name->bytes = NULL;
    if (found && PyLong_CheckExact(found)) return numbered_name(found, name->digits);
    if (!found) found = name->object = ask_name(task);
    return as_utf8(found, &name->bytes);
}

/* --- the host --------------------------------------------------------------------------------- */

/* Asks the host for the task's number. Runs inside a callback: a tracer that has not ended, and its host,
 * can't go away before this thread leaves or suspends its callback. Returns 0 if the tracer has ended. */
static uint32_t number_of(const kpti_stream *stream, kpt_str name, kpt_str coroutine)
{
    const kpt_host *host;
    if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) return 0;
    host = &stream->tracer->env->host;
    return (uint32_t)host->on_task(host->ctx, name, coroutine) & KPTI_MAX_NUMBER;
}

/* Asks the stream's host for the number of a task that the host does not know. Allocating and releasing
 * objects may start a collection, which may run any code, so both happen with the callback suspended. */
static uint32_t ask_host(kpti_thread *thread, const kpti_stream *stream, PyObject *task,
                         PyCodeObject *code)
{
    const uint32_t key = stream->task_key;
    int entering = kpti_callback_suspend(thread);
    PyObject *ref = PyWeakref_NewRef(task, NULL);
    uint32_t number = 0;
    if (ref) {
        task_name name;
        PyObject *bytes;
        const kpt_str shown = name_of(task, &name);
        const kpt_str coroutine = as_utf8(kpti_code_qualname(code), &bytes);
        kpti_callback_resume(thread, entering);
        number = number_of(stream, shown, coroutine);
        entering = kpti_callback_suspend(thread);
        Py_XDECREF(bytes);
        Py_XDECREF(name.bytes);
        Py_XDECREF(name.object);
        kpti_task_table_add(task, ref, key, number);
    }
    PyErr_Clear(); /* a task without weak references stays unknown */
    kpti_callback_resume(thread, entering);
    return number;
}

/* Whether, as far as can be known, no other coroutine awaits the coroutine on top; C code has then resumed
 * it. A superfluous point does no harm: a resume of the same task is open around it. */
static int is_first_of_step(kpti_thread *thread, int begins)
{
    kpti_instruction caller;
    if (kpti_frames_are_known()) {
        const kpti_awaited awaited = kpti_raw_awaited(PyThreadState_Get());
        return awaited == KPTI_NOT_AWAITED ||
               (KPTI_EAGER_TASKS && begins && awaited == KPTI_AWAITED_THROUGH_C);
    }
    caller = kpti_caller(thread);
    return !caller.code || !(caller.code->co_flags & KPTI_CAN_RESUME);
}

static void look(kpti_thread *thread, PyCodeObject *code)
{
    PyObject *task = find_asyncio() ? running_task(thread) : NULL;
    for (kpti_stream *stream = thread->streams; stream; stream = stream->next) {
        int known = !task || !stream->task_key;
        stream->task = known ? 0 : kpti_task_table_find(task, stream->task_key, &known);
        if (!known) stream->task = ask_host(thread, stream, task, code);
    }
    Py_XDECREF(task); /* the running task stays alive */
}

int kpti_tasks_look_quick(kpti_thread *thread, uint32_t *task)
{
    PyObject *running;
    int known = 1;
    *task = 0;
    if (!atomic_load_explicit(&asyncio.known, memory_order_acquire) || PyErr_Occurred()) return 0;
    running = running_task(thread);
    if (!running) return 1;
    *task = kpti_task_table_find(running, thread->streams->task_key, &known);
    Py_DECREF(running);
    return known;
}

void kpti_tasks_look(kpti_thread *thread, PyCodeObject *code, int begins)
{
    kpti_pending_exception pending;
    if (!is_first_of_step(thread, begins)) {
        for (kpti_stream *stream = thread->streams; stream; stream = stream->next)
            stream->task = 0;
    } else if (!PyErr_Occurred()) {
        look(thread, code);
    } else {
        pending = kpti_exception_save();
        look(thread, code);
        kpti_exception_restore(pending);
    }
}
