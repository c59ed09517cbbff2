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

/* Where the four lists go, in the order of a tensor's parts, and of what they are. */
typedef struct writing {
    kpti_et_naming *naming;
    const kpti_et_item *item;
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

/* --- tensors ------------------------------------------------------------------------------------- */

/* [tensor, storage and what else its piece has. */
static void put_new_tensor(writing *w, const uint64_t *at, const kpti_et_tensor_view *t)
{
    kpti_et_naming *n = w->naming;
    const kpti_et_tensor_piece *piece =
        kpti_et_tensor_piece_of(&n->tensor_pieces, &n->pieces, w->item, at, t);
    const char *text = piece->text.data;
    const size_t *ends = piece->ends;
    char *out;
    int *failed = &w->values->failed;
    const uint64_t id = kpti_et_ids_of(&n->tensors, n->heap, t->fixed.tensor_id, t->generation,
                                       &n->next_id, failed);
    const uint64_t storage = t->flags & KPTI_ET_NO_SIZES
                                 ? 0
                                 : kpti_et_ids_of(&n->storages, n->heap, t->fixed.storage_id,
                                                  t->storage_generation, &n->next_id, failed);
    *failed |= piece->text.failed;
    out = kpti_et_text_room(w->values, (size_t)3 * KPTI_JSON_MOST_NUMBER);
    if (!out || *failed) return;
    *out++ = '[';
    out = kpti_put_u64(out, id);
    *out++ = ',';
    out = kpti_put_u64(out, storage);
    kpti_et_text_wrote(w->values, out);
    kpti_et_text_put(w->values, text, ends[0]);
    kpti_et_text_put(w->shapes, text + ends[0], ends[1] - ends[0]);
    kpti_et_text_put(w->types, text + ends[1], ends[2] - ends[1]);
    kpti_et_text_put(w->strides, text + ends[2], ends[3] - ends[2]);
}

/* Keeps what the lists have behind BEFORE. */
static void keep_tensor(kpti_et_tensor_text *kept, const uint64_t *place,
                        kpti_et_text *const lists[], const size_t before[])
{
    size_t used = 0;
    kept->of = NULL;
    for (int i = 0; i < KPTI_ET_PARTS; i++) {
        const size_t size = lists[i]->used - before[i];
        if (lists[i]->failed || used + size > sizeof kept->text - KPTI_ET_STEP) return;
        memcpy(kept->text + used, lists[i]->data + before[i], size);
        kept->sizes[i] = (uint16_t)size;
        used += size;
    }
    kept->of = place;
}

static const uint64_t *put_tensor(writing *w, const uint64_t *at)
{
    const uint64_t *place = kpti_et_tensor_place(w->item, at);
    const uint64_t mixed = (uint64_t)(uintptr_t)place * UINT64_C(0x9E3779B97F4A7C15);
    kpti_et_tensor_text *known = &w->naming->tensor_texts[mixed >> 54];
    kpti_et_text *const lists[] = {w->values, w->shapes, w->types, w->strides};
    size_t before[KPTI_ET_PARTS];
    kpti_et_tensor_view t;
    const uint64_t *next = at + 1;
    if (place == at || known->of != place) next = kpti_et_tensor_read(w->item, at, &t);
    if (known->of == place) {
        const char *text = known->text;
        for (int i = 0; i < KPTI_ET_PARTS; i++) {
            kpti_et_text_put_short(lists[i], text, known->sizes[i]);
            text += known->sizes[i];
        }
        return next;
    }
    for (int i = 0; i < KPTI_ET_PARTS; i++)
        before[i] = lists[i]->used;
    put_new_tensor(w, place, &t);
    keep_tensor(known, place, lists, before);
    return next;
}
_Static_assert(KPTI_ET_TENSOR_TEXTS == 1 << (64 - 54), "as many bits are taken");

/* --- values -------------------------------------------------------------------------------------- */

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
    if (kind == KPT_VALUE_BOOL) {
        kpti_et_text_put(w->values, at[1] ? "true" : "false", at[1] ? 4 : 5);
        put_plain(w, "Bool");
    } else if (kind == KPT_VALUE_DOUBLE) {
        kpti_et_real_pieces_put(&w->naming->reals, w->values, at[1]);
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
    case KPTI_ET_SAME:
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
    const writing w = {n, item, out, &n->shapes, &n->types, &n->strides};
    n->shapes.used = n->types.used = n->strides.used = 0;
    return w;
}

static void put_list(kpti_et_text *out, const kpti_et_text *list)
{
    kpti_et_text_put_all(out, list);
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
    writing w = begin(n, out, item);
    if (as_unsigned && kpti_et_value_head(at).kind == KPT_VALUE_INT)
        kpti_et_text_u64(out, at[1]);
    else
        (void)put_value(&w, at);
}
