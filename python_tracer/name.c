#include "name.h"

#include "session.h"

static Py_ssize_t code_slot = -1;

/* A code object dies: its address may be used again, so no cache may keep it. */
static void code_died(void *id)
{
    (void)id;
    kpti_session_bump();
}

void kpti_name_forget(void)
{
    code_slot = -1;
}

int kpti_name_prepare(void)
{
    if (code_slot < 0) code_slot = kpti_code_extra_index(code_died);
    return code_slot >= 0;
}

/* A str as UTF-8: what can't be encoded is escaped. HOLD receives what must be released. */
static kpt_str text_of(PyObject *text, PyObject **hold)
{
    kpt_str out = {"?", 1};
    Py_ssize_t size = 0;
    const char *bytes = NULL;
    *hold = NULL;
    if (!text || !PyUnicode_Check(text)) return out;
    bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (!bytes) {
        PyErr_Clear();
        *hold = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
        if (!*hold) {
            PyErr_Clear();
            return out;
        }
        bytes = PyBytes_AS_STRING(*hold);
        size = PyBytes_GET_SIZE(*hold);
    }
    out.data = bytes;
    out.size = (uint64_t)size;
    return out;
}

/* How much of FROM fits into ROOM bytes, without a part of a character. */
static size_t fitting(kpt_str from, size_t room)
{
    size_t length = from.size < room ? (size_t)from.size : room;
    while (length > 0 && length < from.size && ((unsigned char)from.data[length] & 0xC0) == 0x80)
        length--;
    return length;
}

void kpti_name_text(PyObject *text, char *out, size_t size)
{
    PyObject *hold;
    kpt_str from = text_of(text, &hold);
    size_t length = fitting(from, size - 1);
    memcpy(out, from.data, length);
    out[length] = 0;
    Py_XDECREF(hold);
}

void kpti_name_module(PyObject *globals, char *out, size_t size)
{
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    out[0] = 0;
    if (name && PyUnicode_Check(name)) kpti_name_text(name, out, size);
}

/* Puts PARTS, up to a NULL one, behind each other; what does not fit is cut. */
static kpt_str join(char *out, size_t room, const kpt_str *parts)
{
    kpt_str joined = {out, 0};
    for (; parts->data; parts++) {
        size_t length = fitting(*parts, room - joined.size);
        memcpy(out + joined.size, parts->data, length);
        joined.size += length;
        if (length < parts->size) break;
    }
    return joined;
}

/* Interns with a display name of PARTS. */
static uint32_t intern_displayed(kpti_function_view view, const kpt_str *parts)
{
    char text[4096];
    view.display = join(text, sizeof text, parts);
    return kpti_function_intern(&view);
}

static uint32_t describe_code(PyCodeObject *code)
{
    PyObject *holds[3];
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    char line[24];
    uint32_t id;
    view.function = text_of(code->co_name, &holds[0]);
    view.qualname = text_of(kpti_code_qualname(code), &holds[1]);
    view.file = text_of(code->co_filename, &holds[2]);
    view.first_line = code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0;
    (void)snprintf(line, sizeof line, "(%d): ", code->co_firstlineno);
    id = intern_displayed(view, (kpt_str[]){view.file, kpt_str_of(line), view.function, {NULL, 0}});
    for (int i = 0; i < 3; i++)
        Py_XDECREF(holds[i]);
    return id;
}

/* On a free-threaded Python two threads may see the same code first, and CPython does not lock its
 * slots. Nothing that waits for Python is done under the lock. */
static uint64_t in_slot(PyCodeObject *code)
{
    void *known = NULL;
    if (code_slot < 0) return 0;
    if (KPTI_FREE_THREADED) kpti_functions_lock();
    if (kpti_code_extra_get((PyObject *)code, code_slot, &known) != 0) known = NULL;
    if (KPTI_FREE_THREADED) kpti_functions_unlock();
    return (uintptr_t)known;
}

/* What is there already is replaced, but for a mark. */
static int put_in_slot(PyCodeObject *code, uint64_t value)
{
    void *known = NULL;
    int kept;
    if (!value || code_slot < 0) return 0;
    if (KPTI_FREE_THREADED) kpti_functions_lock();
    kept = kpti_code_extra_get((PyObject *)code, code_slot, &known) == 0 &&
           ((uint64_t)(uintptr_t)known >> 32 ||
            kpti_code_extra_set((PyObject *)code, code_slot, (void *)(uintptr_t)value) == 0);
    if (KPTI_FREE_THREADED) kpti_functions_unlock();
    if (!kept) PyErr_Clear();
    return kept;
}

uint32_t kpti_name_code(PyCodeObject *code)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    uint32_t id = (uint32_t)in_slot(code);
    if (id) return id;
    PyErr_Fetch(&type, &value, &traceback);
    id = describe_code(code);
    (void)put_in_slot(code, id);
    PyErr_Restore(type, value, traceback);
    return id;
}

_Static_assert(sizeof(uintptr_t) == 8, "a slot has room for an id and a mark");

uint32_t kpti_name_mark(PyCodeObject *code)
{
    return (uint32_t)(in_slot(code) >> 32);
}

uint32_t kpti_name_set_mark(PyCodeObject *code)
{
    static uint32_t last; /* one thread at a time is here: see installation.h */
    uint32_t id = kpti_name_code(code);
    uint32_t mark = kpti_name_mark(code);
    if (mark || !id) return mark;
    return put_in_slot(code, (uint64_t)++last << 32 | id) ? last : 0;
}

uint32_t kpti_name_c(const PyMethodDef *method, PyTypeObject *type)
{
    kpti_function_view view = {.kind = KPT_KIND_C};
    char qualname[512];
    kpt_str end = kpt_str_of(">");
    kpt_str owner;
    view.function = kpt_str_of(method->ml_name ? method->ml_name : "?");
    view.qualname = view.function;
    if (!type)
        return intern_displayed(
            view, (kpt_str[]){kpt_str_of("<built-in function "), view.function, end, {NULL, 0}});
    owner = kpt_str_of(type->tp_name);
    view.qualname = join(qualname, sizeof qualname,
                         (kpt_str[]){owner, kpt_str_of("."), view.function, {NULL, 0}});
    return intern_displayed(view, (kpt_str[]){kpt_str_of("<built-in method "),
                                              view.function,
                                              kpt_str_of(" of "),
                                              owner,
                                              kpt_str_of(" object"),
                                              end,
                                              {NULL, 0}});
}

uint32_t kpti_name_callable(PyObject *callable)
{
    kpti_function_view view = {.kind = KPT_KIND_C};
    int is_type = PyType_Check(callable);
    view.function =
        kpt_str_of(is_type ? ((PyTypeObject *)callable)->tp_name : Py_TYPE(callable)->tp_name);
    view.qualname = view.function;
    return intern_displayed(view, (kpt_str[]){kpt_str_of(is_type ? "<class '" : "<"),
                                              view.function,
                                              kpt_str_of(is_type ? "'>" : " object>"),
                                              {NULL, 0}});
}
