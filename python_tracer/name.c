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

void kpti_name_text(PyObject *text, char *out, size_t size)
{
    PyObject *hold;
    kpt_str from = text_of(text, &hold);
    size_t length = from.size < size ? from.size : size - 1;
    while (length > 0 && length < from.size && ((unsigned char)from.data[length] & 0xC0) == 0x80)
        length--;
    memcpy(out, from.data, length);
    out[length] = 0;
    Py_XDECREF(hold);
}

/* Interns with a display name printed by the caller; a name that does not fit is cut. */
static uint32_t intern_displayed(kpti_function_view *view, const char *format, ...)
{
    char text[4096];
    va_list args;
    int length;
    va_start(args, format);
    length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0) return 0;
    view->display.data = text;
    view->display.size = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    return kpti_function_intern(view);
}

static uint32_t describe_code(PyCodeObject *code)
{
    PyObject *holds[3];
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    uint32_t id;
    view.function = text_of(code->co_name, &holds[0]);
    view.qualname = text_of(kpti_code_qualname(code), &holds[1]);
    view.file = text_of(code->co_filename, &holds[2]);
    view.first_line = code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0;
    id = intern_displayed(&view, "%.*s(%d): %.*s", (int)view.file.size, view.file.data,
                          code->co_firstlineno, (int)view.function.size, view.function.data);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(holds[i]);
    return id;
}

/* On a free-threaded Python two threads may see the same code first, and CPython does not lock its
 * slots. Nothing that waits for Python is done under the lock. */
static uint32_t known_id(PyCodeObject *code)
{
    void *known = NULL;
    if (code_slot < 0) return 0;
    if (KPTI_FREE_THREADED) kpti_functions_lock();
    if (kpti_code_extra_get((PyObject *)code, code_slot, &known) != 0) known = NULL;
    if (KPTI_FREE_THREADED) kpti_functions_unlock();
    return (uint32_t)(uintptr_t)known;
}

static void keep_id(PyCodeObject *code, uint32_t id)
{
    int kept;
    if (!id || code_slot < 0) return;
    if (KPTI_FREE_THREADED) kpti_functions_lock();
    kept = kpti_code_extra_set((PyObject *)code, code_slot, (void *)(uintptr_t)id) == 0;
    if (KPTI_FREE_THREADED) kpti_functions_unlock();
    if (!kept) PyErr_Clear();
}

uint32_t kpti_name_code(PyCodeObject *code)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    uint32_t id = known_id(code);
    if (id) return id;
    PyErr_Fetch(&type, &value, &traceback);
    id = describe_code(code);
    keep_id(code, id);
    PyErr_Restore(type, value, traceback);
    return id;
}

uint32_t kpti_name_c(const PyMethodDef *method, PyTypeObject *type)
{
    kpti_function_view view = {.kind = KPT_KIND_C};
    char qualname[512];
    const char *name = method->ml_name ? method->ml_name : "?";
    view.function = kpt_str_of(name);
    if (!type) {
        view.qualname = view.function;
        return intern_displayed(&view, "<built-in function %s>", name);
    }
    (void)snprintf(qualname, sizeof qualname, "%s.%s", type->tp_name, name);
    view.qualname = kpt_str_of(qualname);
    return intern_displayed(&view, "<built-in method %s of %s object>", name, type->tp_name);
}

uint32_t kpti_name_callable(PyObject *callable)
{
    kpti_function_view view = {.kind = KPT_KIND_C};
    if (PyType_Check(callable)) {
        view.function = kpt_str_of(((PyTypeObject *)callable)->tp_name);
        view.qualname = view.function;
        return intern_displayed(&view, "<class '%s'>", view.function.data);
    }
    view.function = kpt_str_of(Py_TYPE(callable)->tp_name);
    view.qualname = view.function;
    return intern_displayed(&view, "<%s object>", view.function.data);
}
