#include "hosts/torch/exporter/events/py_inputs.h"

#include "writers/operators/input_cursor.h"
#include "writers/operators/operator_inputs.h"

/* Appends ITEM and takes over its reference. Returns 0 with an exception. */
static int append(PyObject *list, PyObject *item)
{
    const int done = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

/* Returns the scalar of kind WHAT, or NULL: with an exception, or because it is none. */
static PyObject *scalar(kpti_input_cursor *c, uint32_t what)
{
    double real;
    switch (what) {
    case KPT_INPUT_FALSE:
    case KPT_INPUT_TRUE:
        return PyBool_FromLong(what == KPT_INPUT_TRUE);
    case KPT_INPUT_INT:
        return PyLong_FromLongLong(kpti_input_signed(c));
    case KPT_INPUT_DOUBLE:
        return PyFloat_FromDouble(kpti_input_double(c));
    case KPT_INPUT_COMPLEX:
        real = kpti_input_double(c);
        return PyComplex_FromDoubles(real, kpti_input_double(c));
    default:
        return NULL;
    }
}

static PyObject *scalars(kpti_input_cursor *c)
{
    PyObject *list = PyList_New(0);
    uint32_t what = kpti_input_byte(c);
    for (; list && what != KPT_INPUT_END; what = kpti_input_byte(c)) {
        if (append(list, scalar(c, what))) continue;
        if (PyErr_Occurred()) Py_CLEAR(list);
        c->at = c->end; /* an unknown byte */
    }
    return list;
}

/* Reads COUNT numbers. Returns them as a list, or an empty one if they are not WANTED. */
static PyObject *numbers(kpti_input_cursor *c, uint64_t count, int wanted)
{
    PyObject *list = PyList_New(0);
    for (uint64_t i = 0; list && i < count && c->at < c->end; i++) {
        const int64_t number = (int64_t)kpti_input_number(c);
        if (wanted && !append(list, PyLong_FromLongLong(number))) Py_CLEAR(list);
    }
    return list;
}

static PyObject *text(const char *name)
{
    return PyUnicode_FromString(name);
}

static PyObject *type(uint32_t number)
{
    const char *const name = kpti_input_type_name(number);
    return name ? text(name) : PyUnicode_FromFormat("type %u", number);
}

/* Returns the part WHAT of a tensor of kind KIND. */
static PyObject *tensor(kpti_input_cursor *c, uint32_t kind, kpti_input_list what)
{
    uint32_t type_number;
    uint64_t dimensions;
    PyObject *sizes;
    PyObject *strides = NULL;
    if (kind == KPT_INPUT_UNDEFINED) {
        if (what == KPTI_INPUT_TYPES) return text("");
        return what == KPTI_INPUT_VALUES ? Py_NewRef(Py_None) : PyList_New(0);
    }
    type_number = kpti_input_byte(c);
    dimensions = kpti_input_number(c);
    sizes = numbers(c, dimensions, what == KPTI_INPUT_SHAPES || what == KPTI_INPUT_SIZES);
    if (sizes && kind == KPT_INPUT_TENSOR)
        strides = numbers(c, dimensions, what == KPTI_INPUT_STRIDES);
    if (PyErr_Occurred()) {
        Py_XDECREF(sizes);
        return NULL;
    }
    if (what == KPTI_INPUT_STRIDES && strides) {
        Py_DECREF(sizes);
        return strides;
    }
    Py_XDECREF(strides);
    if (what == KPTI_INPUT_TYPES || what == KPTI_INPUT_VALUES) {
        Py_DECREF(sizes);
        return what == KPTI_INPUT_TYPES ? type(type_number) : Py_NewRef(Py_None);
    }
    return sizes;
}

static PyObject *tensors(kpti_input_cursor *c, kpti_input_list what)
{
    const int is_shown = what == KPTI_INPUT_SIZES || what == KPTI_INPUT_STRIDES;
    PyObject *list = PyList_New(0);
    uint32_t kind;
    (void)kpti_input_number(c);
    for (kind = kpti_input_byte(c); list && kpti_input_is_tensor(kind); kind = kpti_input_byte(c)) {
        PyObject *const one = tensor(c, kind, what);
        if (!one || (is_shown && PyList_Append(list, one) < 0)) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    if (kind != KPT_INPUT_END) c->at = c->end;
    if (!list || is_shown || what == KPTI_INPUT_SHAPES) return list;
    Py_DECREF(list);
    return what == KPTI_INPUT_TYPES ? text("TensorList") : Py_NewRef(Py_None);
}

/* An input without a size: a scalar or a list of scalars, VALUE, or something else. Takes over the reference. */
static PyObject *plain(PyObject *value, kpti_input_list what, const char *name)
{
    if (!value || what == KPTI_INPUT_VALUES) return value;
    Py_DECREF(value);
    return what == KPTI_INPUT_TYPES ? text(name) : PyList_New(0);
}

static PyObject *input(kpti_input_cursor *c, kpti_input_list what)
{
    const uint32_t kind = kpti_input_byte(c);
    PyObject *value;
    if (kpti_input_is_tensor(kind)) return tensor(c, kind, what);
    if (kind == KPT_INPUT_TENSORS) return tensors(c, what);
    if (kind == KPT_INPUT_SCALARS) return plain(scalars(c), what, "ScalarList");
    value = kind == KPT_INPUT_OTHER ? NULL : scalar(c, kind);
    if (value || PyErr_Occurred()) return plain(value, what, "Scalar");
    if (kind != KPT_INPUT_OTHER) c->at = c->end; /* an unknown byte */
    return plain(Py_NewRef(Py_None), what, "");
}

static PyObject *all_inputs(kpti_input_cursor *c, kpti_input_list what)
{
    PyObject *list = PyList_New(0);
    while (list && !kpti_input_is_last(c))
        if (!append(list, input(c, what))) Py_CLEAR(list);
    return list;
}

/* --- keywords --------------------------------------------------------------------------------- */

static PyObject *decoded(kpt_str bytes)
{
    return PyUnicode_DecodeUTF8(bytes.data, (Py_ssize_t)bytes.size, "replace");
}

static PyObject *value(kpti_input_cursor *c, uint32_t what, int nesting);

static PyObject *values(kpti_input_cursor *c, int nesting)
{
    PyObject *list = PyList_New(0);
    uint32_t what = kpti_input_byte(c);
    for (; list && what != KPT_INPUT_END; what = kpti_input_byte(c))
        if (!append(list, value(c, what, nesting))) Py_CLEAR(list);
    return list;
}

/* Returns the value of kind WHAT, or None if it is not known. */
static PyObject *value(kpti_input_cursor *c, uint32_t what, int nesting)
{
    PyObject *found;
    if (what == KPT_INPUT_TEXT) return decoded(kpti_input_text(c));
    if (what == KPT_INPUT_LIST && nesting < KPT_INPUTS_MAX_NESTING) return values(c, nesting + 1);
    found = scalar(c, what);
    if (found || PyErr_Occurred()) return found;
    kpti_input_skip(c, what);
    return Py_NewRef(Py_None);
}

/* Adds the next keyword to DICT. Returns 0 with an exception. */
static int add_keyword(PyObject *dict, kpti_input_cursor *c, kpt_str name)
{
    PyObject *const key = decoded(name);
    PyObject *const item = key ? value(c, kpti_input_byte(c), 0) : NULL;
    const int done = item && PyDict_SetItem(dict, key, item) == 0;
    Py_XDECREF(item);
    Py_XDECREF(key);
    return done;
}

static PyObject *keywords(kpti_input_cursor *c)
{
    PyObject *dict = PyDict_New();
    kpt_str name;
    if (kpti_input_byte(c) != KPT_INPUT_KEYWORDS) return dict;
    while (dict && kpti_input_keyword(c, &name))
        if (!add_keyword(dict, c, name)) Py_CLEAR(dict);
    return dict;
}

PyObject *kpti_py_inputs(kpt_str inputs, kpti_input_list what)
{
    kpti_input_cursor c = kpti_input_cursor_of(inputs);
    PyObject *const list = all_inputs(&c, what);
    if (!list || what != KPTI_INPUT_KEYWORDS) return list;
    Py_DECREF(list);
    return keywords(&c);
}
