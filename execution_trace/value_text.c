#include "value_text.h"

#include "value_read.h"

/* What is being written, and of what. */
typedef struct writing {
    kpti_et_naming *naming;
    kpti_et_text *out;
    const kpti_et_item *item;
    const uint64_t *end;
} writing;

/* Writes the one of the four that it is for, and returns where the next value begins. */
typedef const uint64_t *(*put_fn)(writing *w, const uint64_t *at);

static const uint64_t *put_items(writing *w, const uint64_t *at, uint64_t count, put_fn put)
{
    kpti_et_text_char(w->out, '[');
    for (uint64_t i = 0; i < count; i++) {
        if (i) kpti_et_text_char(w->out, ',');
        at = put(w, at);
    }
    kpti_et_text_char(w->out, ']');
    return at;
}

static int is_list(kpti_et_value head)
{
    return head.kind == KPT_VALUE_LIST || head.kind == KPT_VALUE_TUPLE;
}

static void put_piece(writing *w, uint32_t at)
{
    kpti_et_pieces_put(&w->naming->pieces, w->out, w->item, at);
}

/* --- values -------------------------------------------------------------------------------------- */

/* [tensor, storage, offset, elements, bytes of one, "device"] */
static const uint64_t *put_tensor(writing *w, const uint64_t *at)
{
    kpti_et_naming *n = w->naming;
    kpti_et_tensor_view t;
    const uint64_t *next = kpti_et_tensor_read(at, w->end, &t);
    const int is_known = !(t.flags & KPTI_ET_NO_SIZES);
    const uint64_t id = kpti_et_ids_of(&n->tensors, n->heap, t.fixed.tensor_id, t.generation,
                                       &n->next_id, &w->out->failed);
    const uint64_t storage =
        is_known ? kpti_et_ids_of(&n->storages, n->heap, t.fixed.storage_id, t.storage_generation,
                                  &n->next_id, &w->out->failed)
                 : 0;
    char *out = kpti_et_text_room(w->out, 6 * KPTI_JSON_MOST_NUMBER);
    if (!out) return next;
    *out++ = '[';
    out = kpti_put_u64(out, id);
    *out++ = ',';
    out = kpti_put_u64(out, storage);
    *out++ = ',';
    out = kpti_put_i64(out, is_known ? kpti_et_tensor_number(&t, 0) : 0);
    *out++ = ',';
    out = kpti_put_i64(out, is_known ? kpti_et_tensor_number(&t, 1) : 0);
    *out++ = ',';
    out = kpti_put_u64(out, is_known ? t.element_bytes : 0);
    *out++ = ',';
    *out++ = '"';
    kpti_et_text_wrote(w->out, out);
    if (is_known) put_piece(w, t.fixed.device);
    KPTI_ET_PUT(w->out, "\"]");
    return next;
}

static void put_quoted(writing *w, const char *before, uint32_t text, const char *after)
{
    kpti_et_text_put(w->out, before, strlen(before));
    put_piece(w, text);
    kpti_et_text_put(w->out, after, strlen(after));
}

static void put_string(writing *w, const uint64_t *at, uint32_t size)
{
    kpti_et_text_char(w->out, '"');
    kpti_et_text_escaped(w->out, (kpt_str){(const char *)(at + 1), size});
    kpti_et_text_char(w->out, '"');
}

static const uint64_t *put_value(writing *w, const uint64_t *at)
{
    const kpti_et_value head = kpti_et_value_head(at);
    double real;
    switch (head.kind) {
    case KPT_VALUE_TENSOR:
        return put_tensor(w, at);
    case KPT_VALUE_LIST:
    case KPT_VALUE_TUPLE:
        return put_items(w, at + 1, head.size, put_value);
    case KPT_VALUE_BOOL:
        kpti_et_text_put(w->out, at[1] ? "true" : "false", at[1] ? 4 : 5);
        return at + 2;
    case KPT_VALUE_INT:
    case KPT_VALUE_STREAM:
        kpti_et_text_i64(w->out, (int64_t)at[1]);
        return at + 2;
    case KPT_VALUE_DOUBLE:
        memcpy(&real, at + 1, sizeof real);
        kpti_et_text_double(w->out, real);
        return at + 2;
    case KPT_VALUE_STRING:
        put_string(w, at, head.size);
        return at + 1 + kpti_et_words(head.size);
    case KPT_VALUE_DEVICE:
        put_quoted(w, "\"", head.size, "\"");
        return at + 1;
    case KPT_VALUE_OTHER:
        put_quoted(w, "\"<", head.size, ">\"");
        return at + 1;
    default:
        KPTI_ET_PUT(w->out, "\"<None>\"");
        return at + 1;
    }
}

/* --- shapes and strides -------------------------------------------------------------------------- */

static void put_numbers(writing *w, const kpti_et_tensor_view *t, uint32_t first, uint32_t count)
{
    char *out = kpti_et_text_room(w->out, ((size_t)count + 1) * KPTI_JSON_MOST_NUMBER);
    if (!out) return;
    *out++ = '[';
    for (uint32_t i = 0; i < count; i++) {
        if (i) *out++ = ',';
        out = kpti_put_i64(out, kpti_et_tensor_number(t, first + i));
    }
    *out++ = ']';
    kpti_et_text_wrote(w->out, out);
}

/* What has no shape has an empty one. */
static const uint64_t *put_dimensions(writing *w, const uint64_t *at, put_fn put, int strides)
{
    const kpti_et_value head = kpti_et_value_head(at);
    kpti_et_tensor_view t;
    const uint64_t *next;
    if (is_list(head)) return put_items(w, at + 1, head.size, put);
    if (head.kind != KPT_VALUE_TENSOR) {
        KPTI_ET_PUT(w->out, "[]");
        return kpti_et_value_end(at, w->end);
    }
    next = kpti_et_tensor_read(at, w->end, &t);
    if (strides)
        put_numbers(w, &t, 2 + t.size_count, t.stride_count);
    else
        put_numbers(w, &t, 2, t.size_count);
    return next;
}

static const uint64_t *put_shape(writing *w, const uint64_t *at)
{
    return put_dimensions(w, at, put_shape, 0);
}

static const uint64_t *put_stride(writing *w, const uint64_t *at)
{
    return put_dimensions(w, at, put_stride, 1);
}

/* --- types --------------------------------------------------------------------------------------- */

static const uint64_t *put_type(writing *w, const uint64_t *at)
{
    static const char *const names[] = {
        [KPT_VALUE_NONE] = "None",     [KPT_VALUE_BOOL] = "Bool",     [KPT_VALUE_INT] = "Int",
        [KPT_VALUE_DOUBLE] = "Double", [KPT_VALUE_STRING] = "String", [KPT_VALUE_DEVICE] = "Device",
        [KPT_VALUE_TENSOR] = "Tensor", [KPT_VALUE_LIST] = "GenericList",
        [KPT_VALUE_TUPLE] = "Tuple",   [KPT_VALUE_OTHER] = "",        [KPT_VALUE_STREAM] = "Int",
    };
    const kpti_et_value head = kpti_et_value_head(at);
    kpti_et_tensor_view t;
    kpti_et_text_put(w->out, names[head.kind], strlen(names[head.kind]));
    if (is_list(head)) return put_items(w, at + 1, head.size, put_type);
    if (head.kind == KPT_VALUE_OTHER) put_piece(w, head.size);
    if (head.kind != KPT_VALUE_TENSOR) return kpti_et_value_end(at, w->end);
    at = kpti_et_tensor_read(at, w->end, &t);
    put_quoted(w, "(", t.fixed.dtype, ")");
    return at;
}

static const uint64_t *put_quoted_type(writing *w, const uint64_t *at)
{
    kpti_et_text_char(w->out, '"');
    at = put_type(w, at);
    kpti_et_text_char(w->out, '"');
    return at;
}

/* --- all four ------------------------------------------------------------------------------------ */

/* A stream has no place among them, wherever it stands. */
static void put_strides(writing *w, const uint64_t *at, uint64_t count)
{
    int is_first = 1;
    kpti_et_text_char(w->out, '[');
    for (uint64_t i = 0; i < count; i++) {
        if (kpti_et_value_head(at).kind == KPT_VALUE_STREAM) {
            at += 2;
            continue;
        }
        if (!is_first) kpti_et_text_char(w->out, ',');
        is_first = 0;
        at = put_stride(w, at);
    }
    kpti_et_text_char(w->out, ']');
}

void kpti_et_put_values(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                        const uint64_t *at, uint64_t count)
{
    writing w = {n, out, item, kpti_et_item_end(item)};
    if (!count) {
        KPTI_ET_PUT(out, "{\"values\":[],\"shapes\":[],\"types\":[],\"strides\":[]}");
        return;
    }
    KPTI_ET_PUT(out, "{\"values\":");
    (void)put_items(&w, at, count, put_value);
    KPTI_ET_PUT(out, ",\"shapes\":");
    (void)put_items(&w, at, count, put_shape);
    KPTI_ET_PUT(out, ",\"types\":");
    (void)put_items(&w, at, count, put_quoted_type);
    KPTI_ET_PUT(out, ",\"strides\":");
    put_strides(&w, at, count);
    kpti_et_text_char(out, '}');
}

void kpti_et_put_value(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                       const uint64_t *at, int as_unsigned)
{
    writing w = {n, out, item, kpti_et_item_end(item)};
    if (as_unsigned && kpti_et_value_head(at).kind == KPT_VALUE_INT)
        kpti_et_text_u64(out, at[1]);
    else
        (void)put_value(&w, at);
}
