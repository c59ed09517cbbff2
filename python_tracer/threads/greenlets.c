#include "python_tracer/threads/greenlets.h"

#include "core/base/assert.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/thread_list.h"
#include "writers/annotations/synthetic_tids.h"

/* All of this state is guarded by the GIL. Builds without a GIL ignore greenlets. */
static PyObject *virtual_threads; /* by greenlet address: (weak reference, capsule) */
static PyObject *parent;          /* C descriptor that reads a greenlet's parent */
static PyObject *settrace;        /* the module's function */
static uint32_t made;             /* number of virtual threads so far */

/* --- virtual threads ------------------------------------------------------------------------------------ */

/* Retires the virtual thread of a greenlet that is gone. A thread may still record through it if the
 * program removed our trace function. So its memory is not freed, but reused for another greenlet of the
 * same OS thread. */
static void retire(PyObject *capsule)
{
    kpti_thread *virtual_thread = PyCapsule_GetPointer(capsule, NULL);
    int alone;
    kpti_thread_list_remove(virtual_thread);
    virtual_thread->streams = NULL;
    virtual_thread->epoch = 0;
    kpti_tracing_lock(); /* its OS thread may be ending now: the later of the two frees it */
    virtual_thread->retired = 1;
    alone = !virtual_thread->os_thread;
    kpti_tracing_unlock();
    if (alone) free(virtual_thread);
}

static kpti_thread *new_virtual_thread(kpti_thread *os_thread, PyObject *greenlet)
{
    const char *type = Py_TYPE(greenlet)->tp_name;
    const char *dot = strrchr(type, '.');
    kpti_thread *virtual_thread = os_thread->virtual_threads;
    while (virtual_thread && !virtual_thread->retired)
        virtual_thread = virtual_thread->next_virtual;
    if (!virtual_thread) {
        virtual_thread = calloc(1, sizeof *virtual_thread);
        if (!virtual_thread) return NULL;
        virtual_thread->os_thread = os_thread;
        virtual_thread->next_virtual = os_thread->virtual_threads;
        os_thread->virtual_threads = virtual_thread;
    }
    kpti_assert(!os_thread->os_thread && virtual_thread->os_thread == os_thread);
    kpti_assert(!virtual_thread->streams && !virtual_thread->owned);
    virtual_thread->retired = 0;
    virtual_thread->named = 1;
    virtual_thread->os_tid = KPTI_BEFORE_GREENLET_TIDS + ++made;
    (void)snprintf(virtual_thread->name, sizeof virtual_thread->name, "%.40s-%u",
                   dot ? dot + 1 : type, made);
    kpti_thread_list_add(virtual_thread);
    return virtual_thread;
}

static PyObject *forget_greenlet(PyObject *key, PyObject *reference)
{
    (void)reference;
    if (virtual_threads && PyDict_DelItem(virtual_threads, key) < 0) PyErr_Clear();
    Py_RETURN_NONE;
}
static PyMethodDef forget_method = {"kpytrace_greenlet_died", forget_greenlet, METH_O, NULL};

/* Makes a virtual thread for GREENLET, whose address is KEY. */
static kpti_thread *add_virtual_thread(kpti_thread *os_thread, PyObject *greenlet, PyObject *key)
{
    PyObject *callback = PyCFunction_New(&forget_method, key);
    PyObject *reference = callback ? PyWeakref_NewRef(greenlet, callback) : NULL;
    kpti_thread *virtual_thread = reference ? new_virtual_thread(os_thread, greenlet) : NULL;
    PyObject *capsule = virtual_thread ? PyCapsule_New(virtual_thread, NULL, retire) : NULL;
    PyObject *both = capsule ? PyTuple_Pack(2, reference, capsule) : NULL;
    if (!both || PyDict_SetItem(virtual_threads, key, both) < 0)
        virtual_thread = NULL; /* the capsule retires it */
    Py_XDECREF(both);
    Py_XDECREF(capsule);
    Py_XDECREF(reference);
    Py_XDECREF(callback);
    return virtual_thread;
}

/* Returns the virtual thread of GREENLET; for the main greenlet that is the OS thread itself. Returns NULL
 * if there is no memory. */
static kpti_thread *virtual_thread_of(kpti_thread *os_thread, PyObject *greenlet)
{
    PyObject *above =
        Py_TYPE(parent)->tp_descr_get(parent, greenlet, (PyObject *)Py_TYPE(greenlet));
    PyObject *key = above && above != Py_None ? PyLong_FromVoidPtr(greenlet) : NULL;
    PyObject *known = key ? kpti_dict_get(virtual_threads, key) : NULL;
    kpti_thread *virtual_thread = above == Py_None ? os_thread : NULL;
    if (known)
        virtual_thread = PyCapsule_GetPointer(PyTuple_GET_ITEM(known, 1), NULL);
    else if (key)
        virtual_thread = add_virtual_thread(os_thread, greenlet, key);
    if (!virtual_thread) PyErr_Clear();
    Py_XDECREF(known);
    Py_XDECREF(key);
    Py_XDECREF(above);
    return virtual_thread;
}

/* --- switches --------------------------------------------------------------------------------- */

/* Removes our trace function after the last tracer stopped, and restores the previous one. Returns the
 * previous trace function, a new reference, or NULL. */
static PyObject *step_back(kpti_thread *os_thread)
{
    PyObject *before = os_thread->previous_trace_function;
    PyObject *ours = PyObject_CallOneArg(settrace, before ? before : Py_None);
    if (!ours) PyErr_Clear();
    Py_XDECREF(ours);
    os_thread->previous_trace_function = NULL;
    os_thread->greenlet_hook_installed = 0;
    return before;
}

/* Our trace function: the thread has switched to another greenlet. */
static PyObject *on_switch(PyObject *self, PyObject *args)
{
    kpti_thread *thread = kpti_thread_self;
    kpti_thread *os_thread = thread && thread->os_thread ? thread->os_thread : thread;
    PyObject *event;
    PyObject *origin;
    PyObject *target;
    PyObject *before = NULL;
    PyObject *answer;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(OO)", &event, &origin, &target)) {
        PyErr_Clear(); /* an unknown event */
    } else if (os_thread && !kpti_greenlets_wanted) {
        before = step_back(os_thread);
        kpti_thread_self = os_thread;
    } else if (os_thread) {
        kpti_thread *virtual_thread = virtual_thread_of(os_thread, target);
        kpti_thread_self = virtual_thread ? virtual_thread : os_thread;
        before = os_thread->previous_trace_function;
        Py_XINCREF(before);
    }
    if (!before) Py_RETURN_NONE;
    answer = PyObject_Call(before, args, NULL);
    Py_DECREF(before);
    return answer;
}
static PyMethodDef switch_method = {"kpytrace_greenlet_switched", on_switch, METH_VARARGS, NULL};

/* The number of loaded modules at the last search that did not find greenlet. Its import adds several. */
static Py_ssize_t searched = -1;

/* Reads the objects that we need from the module. Returns 0 if the module is not loaded, or not completely. */
static int find_module(void)
{
    PyObject *name;
    PyObject *module;
    PyObject *type;
    const Py_ssize_t modules = PyDict_Size(PyImport_GetModuleDict());
    if (settrace && parent && virtual_threads) return 1;
    if (modules == searched) return 0;
    name = PyUnicode_FromString("greenlet");
    module = name ? PyImport_GetModule(name) : NULL;
    if (!module) searched = modules;
    type = module ? PyObject_GetAttrString(module, "greenlet") : NULL;
    if (type && !parent) parent = PyObject_GetAttrString(type, "parent");
    if (parent && !Py_TYPE(parent)->tp_descr_get) Py_CLEAR(parent);
    if (type && !settrace) settrace = PyObject_GetAttrString(module, "settrace");
    if (type && !virtual_threads) virtual_threads = PyDict_New();
    Py_XDECREF(type);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return settrace && parent && virtual_threads;
}

void kpti_greenlets_watch_slow(kpti_thread *thread)
{
    kpti_pending_exception pending;
    PyObject *ours;
    PyObject *before;
    if (KPTI_FREE_THREADED) return;
    pending = kpti_exception_save();
    ours = find_module() ? PyCFunction_New(&switch_method, NULL) : NULL;
    before = ours ? PyObject_CallOneArg(settrace, ours) : NULL;
    if (before) {
        thread->greenlet_hook_installed = 1;
        thread->previous_trace_function = before == Py_None ? NULL : Py_NewRef(before);
    }
    Py_XDECREF(before);
    Py_XDECREF(ours);
    kpti_exception_restore(pending);
}

void kpti_greenlets_thread_ended(kpti_thread *thread)
{
    kpti_assert(!thread->os_thread);
    kpti_tracing_lock();
    while (thread->virtual_threads) {
        kpti_thread *virtual_thread = thread->virtual_threads;
        thread->virtual_threads = virtual_thread->next_virtual;
        virtual_thread->os_thread = NULL;
        if (virtual_thread->retired) free(virtual_thread); /* else its capsule frees it */
    }
    kpti_tracing_unlock();
}

void kpti_greenlets_forget(void)
{
    virtual_threads = NULL;
    parent = NULL;
    settrace = NULL;
    searched = -1;
}
