#include "execution_trace/output/value_text.h"

void kpti_et_naming_init(kpti_et_naming *n, const kpti_heap *heap)
{
    n->tensors.heap = n->shapes.heap = n->types.heap = n->strides.heap = heap;
    n->tensors.next_id = 2;
}

void kpti_et_naming_free(kpti_et_naming *n)
{
    kpti_et_tensors_free(&n->tensors);
    kpti_et_text_free(&n->shapes);
    kpti_et_text_free(&n->types);
    kpti_et_text_free(&n->strides);
}

/* The buffers of the four lists, and the item that they are written for. */
typedef struct writing {
    kpti_et_naming *naming;
    const kpti_et_item *item;
    kpti_et_text *values;
    kpti_et_text *shapes;
    kpti_et_text *types;
    kpti_et_text *strides;
    size_t begin; /* values->used at the begin */
    kpti_et_hole *next_hole;
} writing;

/* Records a hole from BEFORE to the end of values, which is specific to this value. */
static void put_hole(writing *w, size_t before)
{
    if (!w->next_hole) return;
    *w->next_hole++ =
        (kpti_et_hole){(uint32_t)(before - w->begin), (uint32_t)(w->values->used - w->begin)};
}

static void put_everywhere(writing *w, char c)
{
    kpti_et_text_char(w->values, c);
    kpti_et_text_char(w->shapes, c);
    kpti_et_text_char(w->types, c);
    kpti_et_text_char(w->strides, c);
}

/* --- tensors ------------------------------------------------------------------------------------- */

static void put_numbers(kpti_et_text *out, const kpti_et_tensor_view *t, uint32_t first,
                        uint32_t count)
{
    char *at = kpti_et_text_reserve(out, ((size_t)count + 1) * KPTI_JSON_MAX_NUMBER);
    if (!at) return;
    *at++ = '[';
    for (uint32_t i = 0; i < count; i++) {
        if (i) *at++ = ',';
        at = kpti_put_i64(at, kpti_et_tensor_number(t, first + i));
    }
    *at++ = ']';
    kpti_et_text_wrote(out, at);
}

/* Writes [tensor,storage,offset,count,bytes of an element,"device"]. With symbolic sizes, only the ids are
 * known. */
static void put_tensor_value(writing *w, const uint64_t *at, const kpti_et_tensor_view *t)
{
    kpti_et_text *out = w->values;
    const kpti_et_name *name = kpti_et_tensor_name(&w->naming->tensors, w->item, at);
    const size_t before = out->used;
    kpti_et_text_put(out, name->text, name->size);
    put_hole(w, before);
    if (t->flags & KPT_TAPE_NO_SIZES) {
        KPTI_ET_PUT(out, ",0,0,0,\"\"]");
        return;
    }
    kpti_et_text_char(out, ',');
    kpti_et_text_i64(out, kpti_et_tensor_number(t, 0));
    kpti_et_text_char(out, ',');
    kpti_et_text_i64(out, kpti_et_tensor_number(t, 1));
    kpti_et_text_char(out, ',');
    kpti_et_text_u64(out, t->element_bytes);
    KPTI_ET_PUT(out, ",\"");
    kpti_et_text_of(out, w->item, t->fixed.device);
    KPTI_ET_PUT(out, "\"]");
}

static const uint64_t *put_tensor(writing *w, const uint64_t *at)
{
    kpti_et_tensor_view t;
    const uint64_t *next = kpti_et_tensor_read(w->item, at, &t);
    put_tensor_value(w, at, &t);
    put_numbers(w->shapes, &t, 2, t.size_count);
    KPTI_ET_PUT(w->types, "Tensor(");
    kpti_et_text_of(w->types, w->item, t.fixed.dtype);
    kpti_et_text_char(w->types, ')');
    put_numbers(w->strides, &t, 2 + t.size_count, t.stride_count);
    return next;
}

/* --- values -------------------------------------------------------------------------------------- */

/* Writes TYPE, and the empty shape and strides of a value that is not a tensor. */
static void put_plain(writing *w, const char *type)
{
    KPTI_ET_PUT(w->shapes, "[]");
    KPTI_ET_PUT(w->strides, "[]");
    kpti_et_text_put(w->types, type, strlen(type));
}

static void put_quoted(writing *w, kpti_et_text *out, const char *before, uint32_t text,
                       const char *after)
{
    kpti_et_text_put(out, before, strlen(before));
    kpti_et_text_of(out, w->item, text);
    kpti_et_text_put(out, after, strlen(after));
}

/* A bool, an int, a stream or a double: two words. */
static void put_number(writing *w, const uint64_t *at, uint8_t kind)
{
    const size_t before = w->values->used;
    if (kind == KPT_VALUE_BOOL) {
        kpti_et_text_put(w->values, at[1] ? "true" : "false", at[1] ? 4 : 5);
        put_plain(w, "Bool");
    } else if (kind == KPT_VALUE_DOUBLE) {
        char *to = kpti_et_text_reserve(w->values, KPTI_ET_MAX_HOLE);
        if (to) kpti_et_text_wrote(w->values, kpti_et_put_real(&w->naming->reals, to, at[1]));
        put_hole(w, before);
        put_plain(w, "Double");
    } else {
        kpti_et_text_i64(w->values, (int64_t)at[1]);
        put_hole(w, before);
        put_plain(w, "Int");
    }
}

static const uint64_t *put_string(writing *w, const uint64_t *at, uint32_t size)
{
    kpti_et_text_char(w->values, '"');
    kpti_et_text_escaped(w->values, (kpt_str){(const char *)(at + 1), size});
    kpti_et_text_char(w->values, '"');
    put_plain(w, "String");
    return at + 1 + kpti_et_words(size);
}

static const uint64_t *put_value(writing *w, const uint64_t *at);

static const uint64_t *put_items(writing *w, const uint64_t *at, uint32_t count, const char *type)
{
    kpti_et_text_put(w->types, type, strlen(type));
    put_everywhere(w, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i) put_everywhere(w, ',');
        at = put_value(w, at);
    }
    put_everywhere(w, ']');
    return at;
}

/* Writes all four parts of a value. Returns the position of the next value. */
static const uint64_t *put_value(writing *w, const uint64_t *at)
{
    const kpt_tape_value head = kpti_et_value_head(at);
    switch (head.kind) {
    case KPT_VALUE_TENSOR:
    case KPT_TAPE_SAME:
        return put_tensor(w, at);
    case KPT_VALUE_LIST:
        return put_items(w, at + 1, head.size, "GenericList");
    case KPT_VALUE_TUPLE:
        return put_items(w, at + 1, head.size, "Tuple");
    case KPT_VALUE_STRING:
        return put_string(w, at, head.size);
    case KPT_VALUE_DEVICE:
        put_quoted(w, w->values, "\"", head.size, "\"");
        put_plain(w, "Device");
        return at + 1;
    case KPT_VALUE_OTHER:
        put_quoted(w, w->values, "\"<", head.size, ">\"");
        put_plain(w, "");
        put_quoted(w, w->types, "", head.size, "");
        return at + 1;
    case KPT_VALUE_NONE:
        KPTI_ET_PUT(w->values, "\"<None>\"");
        put_plain(w, "None");
        return at + 1;
    default:
        put_number(w, at, head.kind);
        return at + 2;
    }
}

static writing begin(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                     kpti_et_hole *holes)
{
    const writing w = {n, item, out, &n->shapes, &n->types, &n->strides, out->used, holes};
    n->shapes.used = n->types.used = n->strides.used = 0;
    return w;
}

static void put_list(kpti_et_text *out, const kpti_et_text *list)
{
    kpti_et_text_put(out, list->data, list->used);
    out->failed |= list->failed;
}

void kpti_et_put_values(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                        const uint64_t *at, uint64_t count, kpti_et_hole *holes)
{
    writing w = begin(n, out, item, holes);
    KPTI_ET_PUT(out, "{\"values\":[");
    for (uint64_t i = 0; i < count; i++) {
        const size_t strides = w.strides->used;
        const int has_stride = kpti_et_value_head(at).kind != KPT_VALUE_STREAM;
        if (i) {
            kpti_et_text_char(w.values, ',');
            kpti_et_text_char(w.shapes, ',');
            KPTI_ET_PUT(w.types, "\",\"");
        }
        if (strides) kpti_et_text_char(w.strides, ',');
        at = put_value(&w, at);
        if (!has_stride) w.strides->used = strides;
    }
    KPTI_ET_PUT(out, "],\"shapes\":[");
    put_list(out, w.shapes);
    KPTI_ET_PUT(out, "],\"types\":[\"");
    put_list(out, w.types);
    KPTI_ET_PUT(out, "\"],\"strides\":[");
    put_list(out, w.strides);
    KPTI_ET_PUT(out, "]}");
}

void kpti_et_put_value(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                       const uint64_t *at, int as_unsigned)
{
    writing w = begin(n, out, item, NULL);
    if (as_unsigned && kpti_et_value_head(at).kind == KPT_VALUE_INT)
        kpti_et_text_u64(out, at[1]);
    else
        (void)put_value(&w, at);
}
