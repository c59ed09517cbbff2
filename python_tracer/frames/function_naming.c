#include "python_tracer/frames/function_naming.h"

#include "abi/impl/kpti_impl.h"
#include "python_tracer/frames/named_code.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/py_string.h"
#include "python_tracer/state/dead_code.h"

/* A code object has two slots: our function id with the mark, and the object's own address, for code_died. */
static Py_ssize_t code_slot = -1;
static Py_ssize_t address_slot = -1;

/* Records the death of a code object. Its address may be reused, so no cache may keep it. */
static void code_died(void *address)
{
    if (address) kpti_dead_code_add(address); /* 3.10 also reports empty slots */
}

static void name_died(void *id)
{
    kpti_named_remove((uint32_t)(uintptr_t)id);
}

void kpti_name_forget(void)
{
    code_slot = address_slot = -1;
    kpti_named_clear();
}

int kpti_name_prepare(void)
{
    if (address_slot < 0) address_slot = kpti_code_extra_index(code_died);
    if (code_slot < 0 && address_slot >= 0) code_slot = kpti_code_extra_index(name_died);
    return code_slot >= 0;
}

void kpti_name_module(PyObject *globals, char *out, size_t size)
{
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    out[0] = 0;
    if (name && PyUnicode_Check(name)) kpti_py_string_copy(name, out, size);
}

/* Concatenates PARTS, up to one with NULL data, and truncates the result to CAPACITY bytes. */
static kpt_str join(char *out, size_t capacity, const kpt_str *parts)
{
    kpt_str joined = {out, 0};
    for (; parts->data; parts++) {
        size_t length = kpti_py_string_fitting(*parts, capacity - joined.size);
        memcpy(out + joined.size, parts->data, length);
        joined.size += length;
        if (length < parts->size) break;
    }
    return joined;
}

/* Interns VIEW with the concatenated PARTS as display name. */
static uint32_t intern_displayed(kpti_function_view view, const kpt_str *parts)
{
    char text[4096];
    view.display = join(text, sizeof text, parts);
    return kpti_function_intern(&view);
}

uint32_t kpti_name_code_anew(PyCodeObject *code)
{
    char *holds[3];
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    char line[24];
    uint32_t id;
    view.function = kpti_py_string_of(code->co_name, &holds[0]);
    view.qualname = kpti_py_string_of(kpti_code_qualname(code), &holds[1]);
    view.file = kpti_py_string_of(code->co_filename, &holds[2]);
    view.first_line = code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0;
    (void)snprintf(line, sizeof line, "(%d): ", code->co_firstlineno);
    id = intern_displayed(view, (kpt_str[]){view.file, kpt_str_of(line), view.function, {NULL, 0}});
    for (int i = 0; i < 3; i++)
        free(holds[i]);
    return id;
}

/* On a free-threaded Python two threads may see the same code first, and CPython does not lock its slots.
 * No code under this lock waits for Python. */
static uint64_t in_slot(PyCodeObject *code)
{
    void *known = NULL;
    if (code_slot < 0) return 0;
    if (KPTI_FREE_THREADED) kpti_functions_lock();
    if (kpti_code_extra_get((PyObject *)code, code_slot, &known) != 0) known = NULL;
    if (KPTI_FREE_THREADED) kpti_functions_unlock();
    return (uintptr_t)known;
}

/* Sets the address slot, so that CODE's death is reported. Returns 0 if there is no memory. */
static int put_address(PyCodeObject *code)
{
    void *known = NULL;
    return kpti_code_extra_get((PyObject *)code, address_slot, &known) == 0 &&
           (known || kpti_code_extra_set((PyObject *)code, address_slot, code) == 0);
}

/* Replaces the value in the slot unless it has a mark. Returns 0 if there is no memory or no slot. */
static int put_in_slot(PyCodeObject *code, uint64_t value)
{
    void *known = NULL;
    int kept;
    if (!value || code_slot < 0) return 0;
    if (KPTI_FREE_THREADED) kpti_functions_lock();
    kept = kpti_code_extra_get((PyObject *)code, code_slot, &known) == 0 &&
           ((uint64_t)(uintptr_t)known >> 32 ||
            (put_address(code) &&
             kpti_code_extra_set((PyObject *)code, code_slot, (void *)(uintptr_t)value) == 0));
    if (KPTI_FREE_THREADED) kpti_functions_unlock();
    if (!kept) PyErr_Clear();
    return kept;
}

uint32_t kpti_name_code(PyCodeObject *code)
{
    kpti_pending_exception pending;
    uint32_t id = (uint32_t)in_slot(code);
    if (id) return id;
    pending = kpti_exception_save();
    id = kpti_name_code_anew(code);
    if (put_in_slot(code, id)) kpti_named_add(id, code);
    kpti_exception_restore(pending);
    return id;
}

_Static_assert(sizeof(uintptr_t) == 8, "a slot has room for an id and a mark");

int kpti_name_is_kept(PyCodeObject *code)
{
    return in_slot(code) != 0;
}

uint32_t kpti_name_mark(PyCodeObject *code)
{
    return (uint32_t)(in_slot(code) >> 32);
}

uint32_t kpti_name_set_mark(PyCodeObject *code)
{
    static uint32_t last; /* one thread at a time: see installation.h */
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
