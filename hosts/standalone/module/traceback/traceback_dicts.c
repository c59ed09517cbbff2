/* traceback_dicts.c: symbolized tracebacks as Python lists of dictionaries. Each frame, each file name and each
 * stack is made once. Bytes that are not UTF-8 are shown with backslashes, as in the tracer's names. */
#include "hosts/standalone/module/traceback/traceback_dicts.h"

#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "hosts/standalone/module/traceback/symbolize_batch.h"
#include "hosts/standalone/session/shared_tracebacks.h"

const char *const kpti_frame_keys[KPTI_KEYS] = {
    [KPTI_KEY_NAME] = "name",
    [KPTI_KEY_FILENAME] = "filename",
    [KPTI_KEY_LINE] = "line",
    [KPTI_KEY_QUALNAME] = "qualname",
    [KPTI_KEY_FIRST_LINE] = "first_line",
    [KPTI_KEY_END_LINE] = "end_line",
    [KPTI_KEY_COLUMN] = "column",
    [KPTI_KEY_END_COLUMN] = "end_column",
    [KPTI_KEY_KIND] = "kind",
    [KPTI_KEY_OFFSET] = "offset",
    [KPTI_KEY_ADDRESS] = "address",
};
const char *const kpti_frame_kinds[KPTI_KINDS] = {
    [KPT_SYMBOL_PYTHON] = "python",
    [KPT_SYMBOL_SCRIPT] = "script",
    [KPT_SYMBOL_NATIVE] = "cpp",
    [KPT_SYMBOL_GENERATED] = "generated",
};

enum { FILES = 256 }; /* file names that are cached, by their last characters */

/* The intermediate objects. Objects that the result needs have their own reference. */
typedef struct words {
    kpti_batch *batch;
    const kpt_symbols *symbols;
    PyObject **frames;      /* one per symbol */
    kpt_symbol_span *spans; /* of the tracebacks, as shown */
    kpti_hash_table table;  /* of uint64_t: the first traceback with a span, + 1 */
    PyObject *files[FILES];
    kpt_str file_keys[FILES];
} words;

/* --- a frame ---------------------------------------------------------------------------------- */

static PyObject *decode(kpt_str text)
{
    return PyUnicode_DecodeUTF8(text.size ? text.data : "", (Py_ssize_t)text.size,
                                "backslashreplace");
}

static size_t file_hash(kpt_str file)
{
    uint32_t hash = (uint32_t)file.size;
    for (uint64_t i = file.size > 24 ? file.size - 24 : 0; i < file.size; i++)
        hash = hash * 31 + (unsigned char)file.data[i];
    return hash % FILES;
}

static PyObject *file_name(words *w, kpt_str file)
{
    const size_t at = file_hash(file);
    if (!w->files[at] || w->file_keys[at].size != file.size ||
        memcmp(w->file_keys[at].data, file.data, file.size) != 0) {
        Py_CLEAR(w->files[at]);
        w->file_keys[at] = file;
        w->files[at] = decode(file);
    }
    return Py_XNewRef(w->files[at]);
}

static PyObject *number(uint32_t value, uint32_t unknown)
{
    return value == unknown ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(value);
}

static PyObject *qualname_of(const kpt_symbol *symbol, PyObject *name)
{
    const kpt_str qualname = symbol->qualname;
    if (!name) return NULL;
    if (!qualname.size || (qualname.size == symbol->name.size &&
                           memcmp(qualname.data, symbol->name.data, qualname.size) == 0))
        return Py_NewRef(name);
    return decode(qualname);
}

/* Makes the values of all keys up to the kind, and that of the kind's own key. Each is a new reference, or NULL
 * with an exception. */
static void make_values(words *w, const kpt_symbol *symbol, uint32_t kind,
                        PyObject *values[KPTI_KEYS + 1])
{
    values[KPTI_KEY_NAME] = decode(symbol->name);
    values[KPTI_KEY_FILENAME] = file_name(w, symbol->file);
    values[KPTI_KEY_LINE] = PyLong_FromUnsignedLong(symbol->line);
    values[KPTI_KEY_QUALNAME] = qualname_of(symbol, values[KPTI_KEY_NAME]);
    values[KPTI_KEY_FIRST_LINE] = number(symbol->first_line, 0);
    values[KPTI_KEY_END_LINE] = number(symbol->end_line, 0);
    values[KPTI_KEY_COLUMN] = number(symbol->column, KPT_NO_COLUMN);
    values[KPTI_KEY_END_COLUMN] = number(symbol->end_column, KPT_NO_COLUMN);
    values[KPTI_KEY_KIND] = Py_NewRef(w->batch->state->kinds[kind]);
    values[kpti_key_of_kind(kind)] = PyLong_FromUnsignedLongLong(symbol->address);
}

static int fill_frame(words *w, PyObject *dict, const kpt_symbol *symbol)
{
    const uint32_t kind = symbol->kind < KPTI_KINDS ? symbol->kind : KPT_SYMBOL_NATIVE;
    const int own = kpti_key_of_kind(kind);
    PyObject *values[KPTI_KEYS + 1] = {NULL};
    int done = 1;
    make_values(w, symbol, kind, values);
    for (int i = 0; i <= KPTI_KEYS; i++) {
        if (i <= KPTI_KEY_KIND || (i == own && i < KPTI_KEYS))
            done =
                done && values[i] && PyDict_SetItem(dict, w->batch->state->keys[i], values[i]) == 0;
        Py_XDECREF(values[i]);
    }
    return done;
}

/* Returns a borrowed reference. The frame is made at its first use in a stack that is shown. */
static PyObject *frame_at(words *w, uint32_t index)
{
    PyObject *dict = w->frames[index];
    if (dict) return dict;
    dict = PyDict_New();
    if (dict && !fill_frame(w, dict, kpti_symbol_at(w->symbols, index))) Py_CLEAR(dict);
    w->frames[index] = dict;
    return dict;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static PyObject *make_stack(words *w, kpt_symbol_span span)
{
    PyObject *list = PyList_New((Py_ssize_t)span.count);
    for (uint64_t i = 0; list && i < span.count; i++) {
        PyObject *frame = frame_at(w, w->symbols->frames[span.first + i]);
        if (!frame)
            Py_CLEAR(list);
        else
            (void)PyList_SetItem(list, (Py_ssize_t)i, Py_NewRef(frame));
    }
    return list;
}

static uint64_t hash_span(kpt_symbol_span span)
{
    return (kpti_hash_spread(span.first) + span.count) * 0xC2B2AE3D27D4EB4Fu >> 20;
}

static int is_used(const void *slot)
{
    return *(const uint64_t *)slot != 0;
}

static const kpt_symbol_span *span_of(const void *slot, const void *spans)
{
    return (const kpt_symbol_span *)spans + *(const uint64_t *)slot - 1;
}

static int has_key(const void *slot, const void *key, const void *spans)
{
    const kpt_symbol_span *a = span_of(slot, spans);
    const kpt_symbol_span *b = key;
    return (a->first == b->first || !b->count) && a->count == b->count;
}

static uint64_t hash(const void *slot, const void *spans)
{
    return hash_span(*span_of(slot, spans));
}

static const kpti_hash_slots slots = {sizeof(uint64_t), 16, is_used, has_key, hash};

/* Returns the list of the first traceback with the same span, borrowed. Returns NULL if INDEX is the first, and
 * records it. */
static PyObject *find_stack(words *w, uint64_t index, PyObject *lists)
{
    const kpt_symbol_span span = w->spans[index];
    uint64_t *slot = kpti_hash_table_find(&w->table, &slots, hash_span(span), &span, w->spans);
    if (*slot) return PyList_GetItem(lists, (Py_ssize_t)(*slot - 1));
    *slot = index + 1;
    w->table.count++;
    return NULL;
}

static PyObject *make_stacks(words *w)
{
    const uint64_t count = w->batch->count;
    PyObject *lists = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; lists && i < count; i++) {
        PyObject *stack;
        w->spans[i] = kpti_shown(w->batch, i, w->symbols);
        if (!w->spans[i].count) w->spans[i].first = 0;
        stack = find_stack(w, i, lists);
        stack = stack ? Py_NewRef(stack) : make_stack(w, w->spans[i]);
        if (!stack)
            Py_CLEAR(lists);
        else
            (void)PyList_SetItem(lists, (Py_ssize_t)i, stack);
    }
    return lists;
}

/* Returns 1 if the memory could be allocated. */
static int prepare(words *w)
{
    const uint64_t count = w->batch->count;
    uint64_t size = slots.first_capacity;
    while (size < 2 * count)
        size *= 2;
    w->spans = calloc(count + 1, sizeof *w->spans);
    w->frames = calloc(w->symbols->symbol_count + 1, sizeof *w->frames);
    if (w->spans && w->frames && kpti_hash_table_make(&w->table, &slots, &kpti_malloc_heap, size))
        return 1;
    (void)PyErr_NoMemory();
    return 0;
}

static void finish(words *w)
{
    for (uint64_t i = 0; w->frames && i < w->symbols->symbol_count; i++)
        Py_XDECREF(w->frames[i]);
    for (int i = 0; i < FILES; i++)
        Py_XDECREF(w->files[i]);
    free(w->frames);
    free(w->spans);
    kpti_hash_table_free(&w->table, &slots, &kpti_malloc_heap);
}

static kpt_status make_words(kpti_batch *batch, const kpt_symbols *symbols)
{
    words w;
    memset(&w, 0, sizeof w);
    w.batch = batch;
    w.symbols = symbols;
    if (prepare(&w)) batch->result = make_stacks(&w);
    finish(&w);
    return batch->result ? KPT_OK : KPT_E_MEMORY;
}

kpt_status kpti_traceback_words(void *ctx, const kpt_symbols *symbols)
{
    kpti_batch *batch = ctx;
    kpt_status status;
    if (!kpti_symbols_are_whole(symbols, batch->count)) return KPT_E_INTERNAL;
    kpti_batch_take_gil(batch);
    status = make_words(batch, symbols);
    kpti_batch_give_gil(batch);
    return status;
}
