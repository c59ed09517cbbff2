#define PY_SSIZE_T_CLEAN
#include "hosts/standalone/module/options.h"

typedef enum option_kind {
    SWITCH,
    NOT_SWITCH,
    SESSION, /* a flag of the session */
    NOT_SESSION,
    COUNT32,
    COUNT64,
    ON_FULL,
    FILTERS,
    PATH,
    INFO,
    CALLBACKS
} option_kind;

typedef struct option {
    const char *name;
    option_kind kind;
    uint32_t where; /* a flag of kpt_tracer_args or of the session, or a field's offset */
} option;

#define AT(field) ((uint32_t)offsetof(kpti_start_args, field))
static const option known_options[] = {
    {"c_calls", NOT_SWITCH, KPT_TRACE_NO_C_CALLS},
    {"all_callables", SWITCH, KPT_TRACE_ALL_CALLABLES},
    {"this_thread", SWITCH, KPT_TRACE_THIS_THREAD},
    {"tasks", SWITCH, KPT_TRACE_TASKS},
    {"gc", SESSION, KPTI_SESSION_GC},
    {"ring", SESSION, KPTI_SESSION_RING},
    {"compress", NOT_SESSION, KPTI_SESSION_NO_COMPRESS},
    {"save_at_term", SESSION, KPTI_SESSION_TERM},
    {"flush_at_crash", SESSION, KPTI_SESSION_CRASH},
    {"chained_signals", COUNT32, AT(session.chained_signals)},
    {"stream", PATH, AT(session.stream)},
    {"dump", PATH, AT(session.dump)},
    {"dump_signal", COUNT32, AT(session.dump_signal)},
    {"hang_ns", COUNT64, AT(session.hang_ns)},
    {"step_percent", COUNT32, AT(session.step_percent)},
    {"dumps_per_hour", COUNT32, AT(session.dumps_per_hour)},
    {"flush_ns", COUNT64, AT(session.flush_ns)},
    {"gpu", COUNT32, AT(session.gpu)},
    {"info", INFO, 0},
    {"callbacks", CALLBACKS, 0},
    {"on_full", ON_FULL, 0},
    {"filters", FILTERS, 0},
    {"max_events", COUNT64, AT(tracer.max_events)},
    {"max_bytes", COUNT64, AT(tracer.max_bytes)},
    {"ring_ns", COUNT64, AT(tracer.ring_ns)},
    {"ring_bytes", COUNT64, AT(tracer.ring_bytes)},
    {"min_duration_ns", COUNT64, AT(tracer.min_duration_ns)},
    {"max_depth", COUNT32, AT(tracer.max_depth)},
    {"overhead_permille", COUNT32, AT(tracer.overhead_permille)},
    {"tool_id", COUNT32, AT(tracer.tool_id)},
};
enum { KNOWN_OPTIONS = sizeof known_options / sizeof known_options[0] };

/* Returns the index of VALUE in WORDS, or -1 with an exception. */
static int find_word(PyObject *value, const char *const *words, const char *what)
{
    for (int i = 0; words[i]; i++)
        if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, words[i]) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "%s can't be %R", what, value);
    return -1;
}

/* Fills OUT from a tuple ("include" or "exclude", "file", "module" or "glob", bytes). */
static int read_filter(PyObject *item, kpt_filter *out)
{
    static const char *const actions[] = {"include", "exclude", NULL};
    static const char *const matches[] = {"file", "module", "glob", NULL};
    PyObject *action;
    PyObject *match;
    const char *pattern;
    Py_ssize_t size;
    int number;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a filter must be a tuple");
        return 0;
    }
    if (!PyArg_ParseTuple(item, "OOy#", &action, &match, &pattern, &size)) return 0;
    number = find_word(action, actions, "a filter's action");
    if (number < 0) return 0;
    out->action = (uint32_t)(KPT_FILTER_INCLUDE + number);
    number = find_word(match, matches, "a filter's kind");
    if (number < 0) return 0;
    out->match = (uint32_t)(KPT_MATCH_FILE_PREFIX + number);
    out->pattern = (kpt_str){pattern, (uint64_t)size};
    return 1;
}

/* LIST must outlive the filters. */
static int read_filters(PyObject *list, kpti_start_args *args)
{
    Py_ssize_t count;
    if (!PyTuple_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "filters must be a tuple of tuples");
        return 0;
    }
    count = PyTuple_Size(list);
    if (count < 0 || count > INT16_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many filters");
        return 0;
    }
    args->filters = PyMem_Calloc((size_t)count + 1, sizeof *args->filters);
    if (!args->filters) {
        (void)PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!read_filter(PyTuple_GetItem(list, i), &args->filters[i])) return 0;
    args->tracer.filters = args->filters;
    args->tracer.filter_count = (uint32_t)count;
    args->tracer.filter_stride = sizeof *args->filters;
    return 1;
}

static int read_count(PyObject *value, const option *o, kpti_start_args *args)
{
    void *field = (char *)args + o->where;
    unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) return 0;
    if (o->kind == COUNT32 && number > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s is too large: %llu", o->name, number);
        return 0;
    }
    if (o->kind == COUNT32)
        *(uint32_t *)field = (uint32_t)number;
    else
        *(uint64_t *)field = number;
    return 1;
}

/* Reads bytes. A path must not contain a NUL. */
static int read_text(PyObject *value, const option *o, kpti_start_args *args)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(value, &bytes, o->kind == INFO ? &size : NULL) < 0) return 0;
    if (o->kind == INFO)
        args->session.info = (kpt_str){bytes, (uint64_t)size};
    else
        *(const char **)(void *)((char *)args + o->where) = bytes;
    return 1;
}

/* Reads another host's capsules (hosts/torch/session/py_session_view.cc). */
static int read_callbacks(PyObject *value, kpti_start_args *args)
{
    PyObject *host;
    PyObject *watches;
    const kpt_tracer_args *given;
    if (!PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "callbacks must be a tuple");
        return 0;
    }
    if (!PyArg_ParseTuple(value, "OO", &host, &watches)) return 0;
    args->session.callbacks = PyCapsule_GetPointer(host, "kpytrace.kpt_host");
    given = PyCapsule_GetPointer(watches, "kpytrace.kpt_tracer_args");
    if (!args->session.callbacks || !given) return 0;
    if (args->session.callbacks->struct_size < KPT_HOST_V1_SIZE ||
        given->struct_size < KPT_TRACER_ARGS_V1_SIZE) {
        PyErr_SetString(PyExc_ValueError, "the callbacks were made by another version of kpytrace");
        return 0;
    }
    args->tracer.watches = given->watches;
    args->tracer.watch_count = given->watch_count;
    args->tracer.watch_stride = given->watch_stride;
    args->callbacks = value;
    return 1;
}

static int read_option(PyObject *value, const option *o, kpti_start_args *args)
{
    static const char *const policies[] = {"stop", "ring", NULL};
    int truth;
    uint32_t *flags = &args->tracer.flags;
    switch (o->kind) {
    case COUNT32:
    case COUNT64:
        return read_count(value, o, args);
    case FILTERS:
        return read_filters(value, args);
    case ON_FULL:
        truth = find_word(value, policies, o->name);
        if (truth >= 0) args->tracer.on_full = (uint32_t)(KPT_FULL_STOP + truth);
        return truth >= 0;
    case PATH:
    case INFO:
        return read_text(value, o, args);
    case CALLBACKS:
        return read_callbacks(value, args);
    case SESSION:
    case NOT_SESSION:
        flags = &args->session.flags;
        break;
    case SWITCH:
    case NOT_SWITCH:
        break;
    }
    truth = PyObject_IsTrue(value);
    if (truth < 0) return 0;
    if (truth == (o->kind == SESSION || o->kind == SWITCH)) *flags |= o->where;
    return 1;
}

static const option *find_option(PyObject *key)
{
    for (int i = 0; i < KNOWN_OPTIONS; i++)
        if (PyUnicode_Check(key) &&
            PyUnicode_CompareWithASCIIString(key, known_options[i].name) == 0)
            return &known_options[i];
    PyErr_Format(PyExc_TypeError, "unknown option %R", key);
    return NULL;
}

int kpti_options_read(PyObject *dict, kpti_start_args *args)
{
    PyObject *key;
    PyObject *value;
    Py_ssize_t at = 0;
    memset(args, 0, sizeof *args);
    KPT_INIT(&args->tracer);
    while (PyDict_Next(dict, &at, &key, &value)) {
        const option *found = find_option(key);
        if (!found || !read_option(value, found, args)) return 0;
    }
    return 1;
}

void kpti_options_free(kpti_start_args *args)
{
    PyMem_Free(args->filters);
    args->filters = NULL;
}
