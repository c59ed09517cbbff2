#include "python_tracer/threads/greenlets.h"

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/thread_list.h"
#include "writers/annotations/synthetic_tids.h"

/* All of it is under the GIL: without one greenlets are not looked at. */
static PyObject
    *lanes; /* by a greenlet's address: a weak reference to it, and its lane in a capsule */
static PyObject *parent;   /* what finds a greenlet's parent, written in C */
static PyObject *settrace; /* the module's */
static uint32_t made;      /* lanes, so far */

/* --- lanes ------------------------------------------------------------------------------------ */

/* A greenlet is gone. Its lane may still be where a thread records, if the program took our trace function
 * away: so the memory stays, for another greenlet of the same thread. */
static void retire(PyObject *capsule)
{
    kpti_thread *lane = PyCapsule_GetPointer(capsule, NULL);
    int alone;
    kpti_thread_list_remove(lane);
    lane->streams = NULL;
    lane->epoch = 0;
    kpti_tracing_lock(); /* its thread may be ending at this moment: the later one of the two frees it */
    lane->retired = 1;
    alone = !lane->carrier;
    kpti_tracing_unlock();
    if (alone) free(lane);
}

static kpti_thread *new_lane(kpti_thread *carrier, PyObject *greenlet)
{
    const char *type = Py_TYPE(greenlet)->tp_name;
    const char *dot = strrchr(type, '.');
    kpti_thread *lane = carrier->lanes;
    while (lane && !lane->retired)
        lane = lane->next_lane;
    if (!lane) {
        lane = calloc(1, sizeof *lane);
        if (!lane) return NULL;
        lane->carrier = carrier;
        lane->next_lane = carrier->lanes;
        carrier->lanes = lane;
    }
    lane->retired = 0;
    lane->named = 1;
    lane->os_tid = KPTI_BEFORE_GREENLET_TIDS + ++made;
    (void)snprintf(lane->name, sizeof lane->name, "%.40s-%u", dot ? dot + 1 : type, made);
    kpti_thread_list_add(lane);
    return lane;
}

static PyObject *forget_greenlet(PyObject *key, PyObject *reference)
{
    (void)reference;
    if (lanes && PyDict_DelItem(lanes, key) < 0) PyErr_Clear();
    Py_RETURN_NONE;
}
static PyMethodDef forget_method = {"kpytrace_greenlet_died", forget_greenlet, METH_O, NULL};

/* Makes a lane for GREENLET, which KEY is the address of. */
static kpti_thread *add_lane(kpti_thread *carrier, PyObject *greenlet, PyObject *key)
{
    PyObject *callback = PyCFunction_New(&forget_method, key);
    PyObject *reference = callback ? PyWeakref_NewRef(greenlet, callback) : NULL;
    kpti_thread *lane = reference ? new_lane(carrier, greenlet) : NULL;
    PyObject *capsule = lane ? PyCapsule_New(lane, NULL, retire) : NULL;
    PyObject *both = capsule ? PyTuple_Pack(2, reference, capsule) : NULL;
    if (!both || PyDict_SetItem(lanes, key, both) < 0) lane = NULL; /* the capsule retires it */
    Py_XDECREF(both);
    Py_XDECREF(capsule);
    Py_XDECREF(reference);
    Py_XDECREF(callback);
    return lane;
}

/* Of the main greenlet that is the thread itself. NULL: no memory. */
static kpti_thread *lane_of(kpti_thread *carrier, PyObject *greenlet)
{
    PyObject *above =
        Py_TYPE(parent)->tp_descr_get(parent, greenlet, (PyObject *)Py_TYPE(greenlet));
    PyObject *key = above && above != Py_None ? PyLong_FromVoidPtr(greenlet) : NULL;
    PyObject *known = key ? kpti_dict_get(lanes, key) : NULL;
    kpti_thread *lane = above == Py_None ? carrier : NULL;
    if (known)
        lane = PyCapsule_GetPointer(PyTuple_GET_ITEM(known, 1), NULL);
    else if (key)
        lane = add_lane(carrier, greenlet, key);
    if (!lane) PyErr_Clear();
    Py_XDECREF(known);
    Py_XDECREF(key);
    Py_XDECREF(above);
    return lane;
}

/* --- switches --------------------------------------------------------------------------------- */

/* Nobody records any more: all is as it was. A new reference to the trace function that was there. */
static PyObject *step_back(kpti_thread *carrier)
{
    PyObject *before = carrier->told_before;
    PyObject *ours = PyObject_CallOneArg(settrace, before ? before : Py_None);
    if (!ours) PyErr_Clear();
    Py_XDECREF(ours);
    carrier->told_before = NULL;
    carrier->switches_told = 0;
    return before;
}

/* The trace function: the thread has come to another greenlet. */
static PyObject *on_switch(PyObject *self, PyObject *args)
{
    kpti_thread *thread = kpti_thread_self;
    kpti_thread *carrier = thread && thread->carrier ? thread->carrier : thread;
    PyObject *event;
    PyObject *origin;
    PyObject *target;
    PyObject *before = NULL;
    PyObject *answer;
    (void)self;
    if (!PyArg_ParseTuple(args, "O(OO)", &event, &origin, &target)) {
        PyErr_Clear(); /* an event that we don't know */
    } else if (carrier && !kpti_greenlets_wanted) {
        before = step_back(carrier);
        kpti_thread_self = carrier;
    } else if (carrier) {
        kpti_thread *lane = lane_of(carrier, target);
        kpti_thread_self = lane ? lane : carrier;
        before = carrier->told_before;
        Py_XINCREF(before);
    }
    if (!before) Py_RETURN_NONE;
    answer = PyObject_Call(before, args, NULL);
    Py_DECREF(before);
    return answer;
}
static PyMethodDef switch_method = {"kpytrace_greenlet_switched", on_switch, METH_VARARGS, NULL};

/* How many modules there were when it was last missed among them; its import adds several. */
static Py_ssize_t searched = -1;

/* What of the module we need; 0: it is not there, or not all of it yet. */
static int find_module(void)
{
    PyObject *name;
    PyObject *module;
    PyObject *type;
    const Py_ssize_t modules = PyDict_Size(PyImport_GetModuleDict());
    if (settrace && parent && lanes) return 1;
    if (modules == searched) return 0;
    name = PyUnicode_FromString("greenlet");
    module = name ? PyImport_GetModule(name) : NULL;
    if (!module) searched = modules;
    type = module ? PyObject_GetAttrString(module, "greenlet") : NULL;
    if (type && !parent) parent = PyObject_GetAttrString(type, "parent");
    if (parent && !Py_TYPE(parent)->tp_descr_get) Py_CLEAR(parent);
    if (type && !settrace) settrace = PyObject_GetAttrString(module, "settrace");
    if (type && !lanes) lanes = PyDict_New();
    Py_XDECREF(type);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return settrace && parent && lanes;
}

void kpti_greenlets_watch_slow(kpti_thread *thread)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyObject *ours;
    PyObject *before;
    if (KPTI_FREE_THREADED) return;
    PyErr_Fetch(&type, &value, &traceback);
    ours = find_module() ? PyCFunction_New(&switch_method, NULL) : NULL;
    before = ours ? PyObject_CallOneArg(settrace, ours) : NULL;
    if (before) {
        thread->switches_told = 1;
        thread->told_before = before == Py_None ? NULL : Py_NewRef(before);
    }
    Py_XDECREF(before);
    Py_XDECREF(ours);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

void kpti_greenlets_thread_ended(kpti_thread *thread)
{
    kpti_tracing_lock();
    while (thread->lanes) {
        kpti_thread *lane = thread->lanes;
        thread->lanes = lane->next_lane;
        lane->carrier = NULL;
        if (lane->retired) free(lane); /* the others go with their greenlets */
    }
    kpti_tracing_unlock();
}

void kpti_greenlets_forget(void)
{
    lanes = NULL;
    parent = NULL;
    settrace = NULL;
    searched = -1;
}
