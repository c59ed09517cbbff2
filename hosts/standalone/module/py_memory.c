#define PY_SSIZE_T_CLEAN
#include "hosts/standalone/module/py_memory.h"

#include "hosts/standalone/memory/memory_file.h"
#include "hosts/standalone/memory/memory_recording.h"
#include "hosts/standalone/module/support/py_support.h"

/* py_memory.c: the module's functions for recordings of memory. The GIL is held in start and stop, since the
 * tracer changes Python's allocators there, and released in all other functions. */

/* The name by which hosts that report their own memory find the kpt_memory_tracer. */
#define KPTI_MEMORY_TRACER_CAPSULE "kpytrace.memory_tracer"

static const char capsule_name[] = "kpytrace._standalone.memory";

/* Returns the capsule's recording, or NULL with an exception. */
static kpti_recording *recording_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, capsule_name))
        return PyCapsule_GetPointer(capsule, capsule_name);
    PyErr_SetString(PyExc_TypeError, "this is not a recording of kpytrace._standalone");
    return NULL;
}

static void part(kpti_recording *recording)
{
    Py_BEGIN_ALLOW_THREADS;
    kpti_recording_not_at_term(recording);
    Py_END_ALLOW_THREADS;
}

static void free_recording(PyObject *capsule)
{
    kpti_recording *recording = PyCapsule_GetPointer(capsule, capsule_name);
    PyObject *trace = PyCapsule_GetContext(capsule);
    part(recording);
    kpti_recording_free(recording);
    Py_XDECREF(trace); /* the recording has written to its stream until now */
}

static PyObject *make_with(const char *plugin, const kpt_memory_args *args)
{
    kpti_session_error error;
    kpti_recording *recording;
    PyObject *capsule;
    PyObject *result;
    if (kpti_recording_make(plugin, args, &recording, &error) != KPT_OK)
        return kpti_raise(&error, NULL);
    capsule = PyCapsule_New(recording, capsule_name, free_recording);
    if (!capsule) {
        kpti_recording_free(recording);
        return NULL;
    }
    result = Py_BuildValue("Oz", capsule, kpti_recording_noop_reason(recording));
    Py_DECREF(capsule);
    return result;
}

static PyObject *memory_make(PyObject *module, PyObject *args)
{
    kpt_memory_args wanted;
    unsigned long long sample_bytes;
    unsigned long long max_entries;
    unsigned int max_frames;
    PyObject *plugin;
    PyObject *result;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&KKI", PyUnicode_FSConverter, &plugin, &sample_bytes,
                          &max_entries, &max_frames))
        return NULL;
    KPT_INIT(&wanted);
    wanted.sample_bytes = sample_bytes;
    wanted.max_entries = max_entries;
    wanted.max_frames = max_frames;
    result = make_with(PyBytes_AsString(plugin), &wanted);
    Py_DECREF(plugin);
    return result;
}

typedef kpt_status (*control_fn)(kpti_recording *recording, kpti_session_error *error);

static PyObject *control(PyObject *capsule, control_fn call)
{
    kpti_session_error error;
    kpti_recording *recording = recording_of(capsule);
    if (!recording) return NULL;
    if (call(recording, &error) != KPT_OK) return kpti_raise(&error, NULL);
    return Py_NewRef(Py_None);
}

static PyObject *memory_start(PyObject *module, PyObject *capsule)
{
    (void)module;
    return control(capsule, kpti_recording_start);
}

static PyObject *memory_stop(PyObject *module, PyObject *capsule)
{
    (void)module;
    return control(capsule, kpti_recording_stop);
}

static PyObject *memory_stream(PyObject *module, PyObject *args)
{
    kpti_session_error error;
    kpti_recording *recording;
    kpt_status status = KPT_E_STATE;
    PyObject *capsule;
    PyObject *path;
    PyObject *result = NULL;
    const char *info;
    Py_ssize_t size;
    int kind;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&iy#", &capsule, PyUnicode_FSConverter, &path, &kind, &info,
                          &size))
        return NULL;
    recording = recording_of(capsule);
    if (recording) {
        status = kpti_recording_stream(recording, PyBytes_AsString(path), (kpti_recording_kind)kind,
                                       (kpt_str){info, (uint64_t)size}, &error);
        result = status == KPT_OK ? Py_NewRef(Py_None) : kpti_raise(&error, NULL);
    }
    Py_DECREF(path);
    return result;
}

static PyObject *memory_join(PyObject *module, PyObject *args)
{
    kpti_session_error error;
    kpti_recording *recording;
    kpti_session *session;
    kpt_status status;
    PyObject *trace;
    PyObject *capsule;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &trace, &capsule)) return NULL;
    session = kpti_session_of(trace);
    recording = session ? recording_of(capsule) : NULL;
    if (!recording) return NULL;
    if (!PyCapsule_GetContext(capsule)) (void)PyCapsule_SetContext(capsule, Py_NewRef(trace));
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_recording_join(recording, session, &error);
    Py_END_ALLOW_THREADS;
    return status == KPT_OK ? Py_NewRef(Py_None) : kpti_raise(&error, NULL);
}

static PyObject *memory_drop_spool(PyObject *module, PyObject *capsule)
{
    kpti_recording *recording = recording_of(capsule);
    (void)module;
    if (!recording) return NULL;
    kpti_recording_drop_spool(recording);
    return Py_NewRef(Py_None);
}

/* An O& converter: what tables have beside the usual, None or (nanoseconds since the begin or -1, temporary_within). */
static int as_wanted(PyObject *given, void *wanted)
{
    kpti_memory_wanted *out = wanted;
    long long at_ns = -1;
    unsigned int within = 0;
    memset(out, 0, sizeof *out);
    if (given == Py_None) return 1;
    if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "LI", &at_ns, &within)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "wanted is a tuple or None");
        return 0;
    }
    *out = (kpti_memory_wanted){at_ns >= 0, at_ns, within};
    return 1;
}

static PyObject *memory_convert(PyObject *module, PyObject *args)
{
    kpti_memory_wanted wanted;
    kpti_session_error error;
    kpti_kpt_state state = KPTI_KPT_WHOLE;
    kpt_status status;
    PyObject *source;
    PyObject *path;
    int recover;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&pO&", PyUnicode_FSConverter, &source, PyUnicode_FSConverter,
                          &path, &recover, as_wanted, &wanted))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_memory_file_convert(PyBytes_AsString(source), recover, &wanted,
                                      PyBytes_AsString(path), &state, &error);
    Py_END_ALLOW_THREADS;
    Py_DECREF(source);
    Py_DECREF(path);
    return status == KPT_OK ? PyUnicode_FromString(kpti_kpt_state_name(state))
                            : kpti_raise(&error, NULL);
}

static PyObject *memory_flush(PyObject *module, PyObject *capsule)
{
    kpti_session_error error;
    kpti_recording *recording = recording_of(capsule);
    kpt_status status;
    (void)module;
    if (!recording) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_recording_flush(recording, &error);
    Py_END_ALLOW_THREADS;
    return status == KPT_OK ? Py_NewRef(Py_None) : kpti_raise(&error, NULL);
}

static PyObject *memory_is_recording(PyObject *module, PyObject *capsule)
{
    const kpti_recording *recording = recording_of(capsule);
    (void)module;
    return recording ? PyBool_FromLong(kpti_recording_is_recording(recording)) : NULL;
}

static PyObject *memory_not_at_term(PyObject *module, PyObject *capsule)
{
    kpti_recording *recording = recording_of(capsule);
    (void)module;
    if (!recording) return NULL;
    part(recording);
    return Py_NewRef(Py_None);
}

static PyObject *memory_free(PyObject *module, PyObject *capsule)
{
    kpti_recording *recording = recording_of(capsule);
    (void)module;
    if (!recording) return NULL;
    part(recording);
    return control(capsule, kpti_recording_close);
}

/* Returns a capsule that borrows the tracer. The tracer is valid as long as the recording's capsule. */
static PyObject *memory_tracer(PyObject *module, PyObject *capsule)
{
    kpti_recording *recording = recording_of(capsule);
    (void)module;
    if (!recording) return NULL;
    return PyCapsule_New((void *)(uintptr_t)kpti_recording_tracer(recording),
                         KPTI_MEMORY_TRACER_CAPSULE, NULL);
}

/* Runs memory_export or, without WANTED, memory_at_term with the recording and the path in ARGS. */
static PyObject *with_path(PyObject *args, const char *format, kpti_memory_wanted *wanted)
{
    kpti_session_error error;
    kpti_recording *recording;
    kpt_status status;
    PyObject *capsule;
    PyObject *path;
    if (!PyArg_ParseTuple(args, format, &capsule, PyUnicode_FSConverter, &path, as_wanted, wanted))
        return NULL;
    recording = recording_of(capsule);
    if (!recording) {
        Py_DECREF(path);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = wanted ? kpti_recording_export(recording, wanted, PyBytes_AsString(path), &error)
                    : kpti_recording_at_term(recording, PyBytes_AsString(path), &error);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (status != KPT_OK) return kpti_raise(&error, NULL);
    return Py_NewRef(Py_None);
}

static PyObject *memory_export(PyObject *module, PyObject *args)
{
    kpti_memory_wanted wanted;
    (void)module;
    return with_path(args, "OO&O&", &wanted);
}

static PyObject *memory_at_term(PyObject *module, PyObject *args)
{
    (void)module;
    return with_path(args, "OO&", NULL);
}

PyMethodDef kpti_memory_methods[] = {
    {"memory_make", memory_make, METH_VARARGS,
     "memory_make(plugin, sample_bytes, max_entries, max_frames) -> (recording, reason why nothing "
     "would be recorded or None)"},
    {"memory_start", memory_start, METH_O, "memory_start(recording): starts or resumes recording"},
    {"memory_stop", memory_stop, METH_O, "memory_stop(recording): ends recording"},
    {"memory_stream", memory_stream, METH_VARARGS,
     "memory_stream(recording, path, kind, info): writes the recording to PATH, a .kpt file, while "
     "it "
     "runs; kind 0: the user's file, 1: a spool, 2: a spool without a name, 3: no file, it is "
     "added up"},
    {"memory_join", memory_join, METH_VARARGS,
     "memory_join(trace, recording): writes the recording to the .kpt file that the trace writes "
     "while it runs"},
    {"memory_flush", memory_flush, METH_O,
     "memory_flush(recording): writes what is not yet in its .kpt file"},
    {"memory_drop_spool", memory_drop_spool, METH_O,
     "memory_drop_spool(recording): removes the file of a spool, which exports still read"},
    {"memory_convert", memory_convert, METH_VARARGS,
     "memory_convert(source, path, recover, wanted) -> how the .kpt file SOURCE ends; writes PATH "
     "from it. "
     "wanted: None or (nanoseconds since the begin or -1, temporary_within)"},
    {"memory_is_recording", memory_is_recording, METH_O,
     "memory_is_recording(recording) -> True if it records in this process"},
    {"memory_export", memory_export, METH_VARARGS,
     "memory_export(recording, path, wanted): writes the recording to PATH; wanted: as in "
     "memory_convert"},
    {"memory_at_term", memory_at_term, METH_VARARGS,
     "memory_at_term(recording, path): writes the recording to PATH at SIGTERM, unless the program "
     "handles SIGTERM"},
    {"memory_not_at_term", memory_not_at_term, METH_O,
     "memory_not_at_term(recording): no longer writes the recording at SIGTERM"},
    {"memory_tracer", memory_tracer, METH_O,
     "memory_tracer(recording) -> a capsule of its kpt_memory_tracer, valid until the recording is "
     "freed"},
    {"memory_free", memory_free, METH_O, "memory_free(recording): frees the recording"},
    {NULL, NULL, 0, NULL},
};
