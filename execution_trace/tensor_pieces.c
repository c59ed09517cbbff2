#include "tensor_pieces.h"

static void put_numbers(kpti_et_text *out, const kpti_et_tensor_view *t, uint32_t first,
                        uint32_t count)
{
    char *at = kpti_et_text_room(out, ((size_t)count + 1) * KPTI_JSON_MOST_NUMBER);
    if (!at) return;
    *at++ = '[';
    for (uint32_t i = 0; i < count; i++) {
        if (i) *at++ = ',';
        at = kpti_put_i64(at, kpti_et_tensor_number(t, first + i));
    }
    *at++ = ']';
    kpti_et_text_wrote(out, at);
}

/* Where sizes are symbolic, nothing is known. */
static void put_value(kpti_et_text *out, kpti_et_pieces *texts, const kpti_et_item *item,
                      const kpti_et_tensor_view *t)
{
    if (t->flags & KPTI_ET_NO_SIZES) {
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
    kpti_et_pieces_put(texts, out, item, t->fixed.device);
    KPTI_ET_PUT(out, "\"]");
}

static void fill(kpti_et_tensor_piece *piece, kpti_et_pieces *texts, const kpti_et_item *item,
                 const kpti_et_tensor_view *t)
{
    kpti_et_text *out = &piece->text;
    out->heap = texts->heap;
    out->used = 0;
    put_value(out, texts, item, t);
    piece->ends[KPTI_ET_OF_VALUE] = out->used;
    put_numbers(out, t, 2, t->size_count);
    piece->ends[KPTI_ET_OF_SHAPE] = out->used;
    KPTI_ET_PUT(out, "Tensor(");
    kpti_et_pieces_put(texts, out, item, t->fixed.dtype);
    kpti_et_text_char(out, ')');
    piece->ends[KPTI_ET_OF_TYPE] = out->used;
    put_numbers(out, t, 2 + t->size_count, t->stride_count);
    piece->ends[KPTI_ET_OF_STRIDE] = out->used;
}

/* All that the text is made of: what it is, its texts and its numbers. They lie in the journal. */
static int is_same(const kpti_et_tensor_piece *piece, const kpti_et_chunk *chunk,
                   const uint64_t *at, const kpti_et_tensor_view *t)
{
    if (piece->chunk != chunk || piece->first[0] != at[0] || piece->first[1] != at[1]) return 0;
    for (uint64_t i = 0; i < t->number_words; i++)
        if (piece->numbers[i] != t->numbers[i]) return 0;
    return 1;
}

static uint64_t hash_of(const kpti_et_chunk *chunk, const uint64_t *at,
                        const kpti_et_tensor_view *t)
{
    const uint64_t factor = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t hash = ((uint64_t)(uintptr_t)chunk ^ at[0] ^ at[1] << 7) * factor;
    for (uint64_t i = 0; i < t->number_words; i++)
        hash = (hash ^ hash >> 29 ^ t->numbers[i]) * factor;
    return hash >> 40;
}

const kpti_et_tensor_piece *kpti_et_tensor_piece_of(kpti_et_tensor_pieces *t, kpti_et_pieces *texts,
                                                    const kpti_et_item *item, const uint64_t *at,
                                                    const kpti_et_tensor_view *view)
{
    kpti_et_tensor_piece *piece =
        &t->pieces[hash_of(item->chunk, at, view) % KPTI_ET_TENSOR_PIECES];
    if (is_same(piece, item->chunk, at, view)) return piece;
    piece->chunk = item->chunk;
    piece->first = at;
    piece->numbers = view->numbers;
    fill(piece, texts, item, view);
    return piece;
}

void kpti_et_tensor_pieces_free(kpti_et_tensor_pieces *t)
{
    for (int i = 0; i < KPTI_ET_TENSOR_PIECES; i++)
        if (t->pieces[i].text.heap) kpti_et_text_free(&t->pieces[i].text);
}
