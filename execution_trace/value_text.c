#include "value_text.h"

void kpti_et_naming_init(kpti_et_naming *n, const kpti_heap *heap)
{
    n->heap = n->pieces.heap = n->shapes.heap = n->types.heap = n->strides.heap = heap;
    n->next_id = 2;
}

void kpti_et_naming_free(kpti_et_naming *n)
{
    kpti_et_pieces_free(&n->pieces);
    kpti_et_tensor_pieces_free(&n->tensor_pieces);
    kpti_et_ids_free(&n->tensors, n->heap);
    kpti_et_ids_free(&n->storages, n->heap);
    kpti_et_text_free(&n->shapes);
    kpti_et_text_free(&n->types);
    kpti_et_text_free(&n->strides);
}

/* Where the four lists go, and of what they are. */
typedef struct writing {
    kpti_et_naming *naming;
    const kpti_et_item *item;
    const uint64_t *end;
    kpti_et_text *values;
    kpti_et_text *shapes;
    kpti_et_text *types;
    kpti_et_text *strides;
} writing;

static void put_everywhere(writing *w, char c)
{
    kpti_et_text_char(w->values, c);
    kpti_et_text_char(w->shapes, c);
    kpti_et_text_char(w->types, c);
    kpti_et_text_char(w->strides, c);
}

/* [tensor, storage and what else its piece has. */
static const uint64_t *put_tensor(writing *w, const uint64_t *at)
{
    kpti_et_naming *n = w->naming;
    kpti_et_tensor_view t;
    const uint64_t *next = kpti_et_tensor_read(at, w->end, &t);
    const kpti_et_tensor_piece *piece =
        kpti_et_tensor_piece_of(&n->tensor_pieces, &n->pieces, w->item, at, &t);
    const char *text = piece->text.data;
    const size_t *ends = piece->ends;
    char *out;
    int *failed = &w->values->failed;
    const uint64_t id =
        kpti_et_ids_of(&n->tensors, n->heap, t.fixed.tensor_id, t.generation, &n->next_id, failed);
    const uint64_t storage = t.flags & KPTI_ET_NO_SIZES
                                 ? 0
                                 : kpti_et_ids_of(&n->storages, n->heap, t.fixed.storage_id,
                                                  t.storage_generation, &n->next_id, failed);
    *failed |= piece->text.failed;
    out = kpti_et_text_room(w->values, (size_t)3 * KPTI_JSON_MOST_NUMBER);
    if (!out || *failed) return next;
    *out++ = '[';
    out = kpti_put_u64(out, id);
    *out++ = ',';
    out = kpti_put_u64(out, storage);
    kpti_et_text_wrote(w->values, out);
    kpti_et_text_put(w->values, text, ends[0]);
    kpti_et_text_put(w->shapes, text + ends[0], ends[1] - ends[0]);
    kpti_et_text_put(w->types, text + ends[1], ends[2] - ends[1]);
    kpti_et_text_put(w->strides, text + ends[2], ends[3] - ends[2]);
    return next;
}

/* TYPE, and the empty shape of what is no tensor. */
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
    kpti_et_pieces_put(&w->naming->pieces, out, w->item, text);
    kpti_et_text_put(out, after, strlen(after));
}

/* A bool, an int, a stream or a double: two words. */
static void put_number(writing *w, const uint64_t *at, uint8_t kind)
{
    double real;
    if (kind == KPT_VALUE_BOOL) {
        kpti_et_text_put(w->values, at[1] ? "true" : "false", at[1] ? 4 : 5);
        put_plain(w, "Bool");
    } else if (kind == KPT_VALUE_DOUBLE) {
        memcpy(&real, at + 1, sizeof real);
        kpti_et_text_double(w->values, real);
        put_plain(w, "Double");
    } else {
        kpti_et_text_i64(w->values, (int64_t)at[1]);
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

/* All four of it; where the next value begins. */
static const uint64_t *put_value(writing *w, const uint64_t *at)
{
    const kpti_et_value head = kpti_et_value_head(at);
    switch (head.kind) {
    case KPT_VALUE_TENSOR:
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

static writing begin(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item)
{
    const writing w = {n, item, kpti_et_item_end(item), out, &n->shapes, &n->types, &n->strides};
    n->shapes.used = n->types.used = n->strides.used = 0;
    return w;
}

static void put_list(kpti_et_text *out, const char *name, kpti_et_text *list)
{
    kpti_et_text_put(out, name, strlen(name));
    kpti_et_text_put(out, list->data, list->used);
    out->failed |= list->failed;
}

void kpti_et_put_values(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                        const uint64_t *at, uint64_t count)
{
    writing w;
    if (!count) {
        KPTI_ET_PUT(out, "{\"values\":[],\"shapes\":[],\"types\":[],\"strides\":[]}");
        return;
    }
    w = begin(n, out, item);
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
    put_list(out, "],\"shapes\":[", w.shapes);
    put_list(out, "],\"types\":[\"", w.types);
    put_list(out, "\"],\"strides\":[", w.strides);
    KPTI_ET_PUT(out, "]}");
}

void kpti_et_put_value(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                       const uint64_t *at, int as_unsigned)
{
    writing w = begin(n, out, item);
    if (as_unsigned && kpti_et_value_head(at).kind == KPT_VALUE_INT)
        kpti_et_text_u64(out, at[1]);
    else
        (void)put_value(&w, at);
}
