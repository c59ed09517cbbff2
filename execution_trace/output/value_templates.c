#include "execution_trace/output/value_templates.h"

#include "core/base/hash.h"

/* Longer values are formatted each time. */
enum { MAX_WORDS = 8192, MAX_TEXT = 1 << 18 };
enum { MAX_BYTES = 16 << 20 };

void kpti_et_forms_init(kpti_et_forms *f, const kpti_heap *heap)
{
    f->heap = heap;
    kpti_et_naming_init(&f->naming, heap);
}

static void forget(kpti_et_forms *f, kpti_et_form **slot)
{
    if (!*slot) return;
    f->bytes -= (*slot)->bytes;
    kpti_heap_give(f->heap, *slot, (*slot)->bytes);
    *slot = NULL;
}

static void forget_all(kpti_et_forms *f)
{
    for (int i = 0; i < KPTI_ET_FORMS; i++)
        forget(f, &f->slots[i]);
}

static void free_templates(kpti_et_forms *f)
{
    kpti_heap_give(f->heap, f->words, f->capacity * sizeof *f->words);
    kpti_heap_give(f->heap, f->values, f->capacity * sizeof *f->values);
    kpti_heap_give(f->heap, f->holes, f->capacity * sizeof *f->holes);
    f->words = NULL;
    f->values = NULL;
    f->holes = NULL;
    f->capacity = 0;
}

void kpti_et_forms_free(kpti_et_forms *f)
{
    forget_all(f);
    free_templates(f);
    kpti_et_naming_free(&f->naming);
}

/* --- taking -------------------------------------------------------------------------------------- */

/* Makes space for WORDS words. Returns 0 if there is no memory. */
static int reserve(kpti_et_forms *f, uint32_t words)
{
    uint32_t capacity = 64;
    while (capacity < words)
        capacity *= 2;
    free_templates(f);
    f->words = kpti_heap_take(f->heap, capacity * sizeof *f->words);
    f->values = kpti_heap_take(f->heap, capacity * sizeof *f->values);
    f->holes = kpti_heap_take(f->heap, capacity * sizeof *f->holes);
    f->capacity = capacity;
    if (f->words && f->values && f->holes) return 1;
    free_templates(f);
    return 0;
}

/* Positions for the next word and the next value with a hole. */
typedef struct taking {
    kpti_et_tensors *tensors;
    const kpti_et_item *item;
    uint64_t *word;
    const uint64_t **value;
} taking;

static const uint64_t *take_values(taking *t, const uint64_t *at, uint64_t count, int depth);

/* Takes a list with its items, or a string with its words. */
static const uint64_t *take_long(taking *t, const uint64_t *at, int depth)
{
    const kpt_tape_value head = kpti_et_value_head(at);
    const uint64_t words = 1 + kpti_et_words(head.size);
    if (head.kind != KPT_VALUE_STRING) {
        if (depth == KPT_TAPE_MOST_DEPTH) return NULL;
        *t->word++ = *at;
        return take_values(t, at + 1, head.size, depth + 1);
    }
    if ((uint64_t)(kpti_et_item_end(t->item) - at) < words) return NULL;
    memcpy(t->word, at, words * KPTI_ET_WORD);
    t->word += words;
    return at + words;
}

/* As kpti_et_values_end. The caller provides space for as many words as the record has. The word of a
 * tensor is its kind. */
static const uint64_t *take_values(taking *t, const uint64_t *at, uint64_t count, int depth)
{
    const uint64_t *end = kpti_et_item_end(t->item);
    for (; count && at; count--) {
        uint64_t kind;
        if (at >= end) return NULL;
        switch (kpti_et_value_head(at).kind) {
        case KPT_VALUE_TENSOR:
        case KPT_TAPE_SAME:
            *t->value++ = at;
            at = kpti_et_tensor_take(t->tensors, t->item, at, &kind);
            *t->word++ = kind << 8 | KPT_TAPE_SAME;
            break;
        case KPT_VALUE_NONE:
        case KPT_VALUE_DEVICE:
        case KPT_VALUE_OTHER:
            *t->word++ = *at++;
            break;
        case KPT_VALUE_INT:
        case KPT_VALUE_STREAM:
        case KPT_VALUE_DOUBLE:
            if (end - at < 2) return NULL;
            *t->value++ = at;
            *t->word++ = *at;
            at += 2;
            break;
        case KPT_VALUE_BOOL:
            if (end - at < 2) return NULL;
            *t->word++ = at[0];
            *t->word++ = at[1];
            at += 2;
            break;
        case KPT_VALUE_STRING:
        case KPT_VALUE_LIST:
        case KPT_VALUE_TUPLE:
            at = take_long(t, at, depth);
            break;
        default:
            return NULL;
        }
    }
    return at;
}

static uint64_t hash_of(const uint64_t *words, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = kpti_hash_spread(hash ^ hash >> 29 ^ words[i]);
    return hash;
}

const uint64_t *kpti_et_forms_take(kpti_et_forms *f, const kpti_et_item *item, const uint64_t *at,
                                   uint64_t count)
{
    taking t = {&f->naming.tensors, item, NULL, NULL};
    uint32_t words;
    f->taken = (kpti_et_taken){.item = item, .at = at, .count = count};
    if (!count) return at;
    words = item->record->words;
    if (words > MAX_WORDS || (words > f->capacity && !reserve(f, words)))
        return kpti_et_values_end(item, at, count);
    t.word = f->words;
    t.value = f->values;
    *t.word++ = (uint64_t)(uintptr_t)item->chunk; /* texts are offsets in the chunk */
    at = take_values(&t, at, count, 0);
    f->taken.word_count = (uint32_t)(t.word - f->words);
    f->taken.hole_count = (uint32_t)(t.value - f->values);
    f->taken.hash = hash_of(f->words, f->taken.word_count);
    return at;
}

/* --- forms --------------------------------------------------------------------------------------- */

/* Offsets of the holes in the text. */
static uint32_t *holes_of(kpti_et_form *form)
{
    return (uint32_t *)(form->words + form->word_count);
}

static char *text_of(kpti_et_form *form)
{
    return (char *)(holes_of(form) + form->hole_count);
}

static int is_taken(const kpti_et_forms *f, const kpti_et_form *form)
{
    const kpti_et_taken *taken = &f->taken;
    if (!form || form->hash != taken->hash || form->word_count != taken->word_count) return 0;
    for (uint32_t i = 0; i < taken->word_count; i++)
        if (form->words[i] != f->words[i]) return 0;
    return 1;
}

/* A form is in one of two slots. */
static kpti_et_form **slots_of(kpti_et_forms *f)
{
    return &f->slots[f->taken.hash >> 55 << 1];
}
_Static_assert(KPTI_ET_FORMS == 2 << (64 - 55), "as many bits are taken");

static kpti_et_form *find(kpti_et_forms *f)
{
    kpti_et_form **slots = slots_of(f);
    kpti_et_form *found = slots[1];
    if (is_taken(f, slots[0])) return slots[0];
    if (!is_taken(f, found)) return NULL;
    slots[1] = slots[0]; /* so that a third form replaces the other one */
    slots[0] = found;
    return found;
}

/* Stores the SIZE bytes at TEXT, which were just written for the taken values, as a form. */
static void keep(kpti_et_forms *f, const char *text, size_t size)
{
    const kpti_et_taken *taken = &f->taken;
    kpti_et_form **slots = slots_of(f);
    const size_t bytes = sizeof **slots + taken->word_count * sizeof *f->words +
                         taken->hole_count * sizeof(uint32_t) + size + KPTI_ET_STEP;
    kpti_et_form *form;
    char *to;
    uint32_t from = 0;
    if (f->bytes + bytes > MAX_BYTES) forget_all(f);
    form = kpti_heap_take(f->heap, bytes);
    if (!form) return;
    *form = (kpti_et_form){.hash = taken->hash,
                           .bytes = (uint32_t)bytes,
                           .word_count = taken->word_count,
                           .hole_count = taken->hole_count};
    memcpy(form->words, f->words, taken->word_count * sizeof *f->words);
    to = text_of(form);
    for (uint32_t i = 0; i < taken->hole_count; i++) {
        to = kpti_put_bytes(to, text + from, f->holes[i].begin - from);
        from = f->holes[i].end;
        holes_of(form)[i] = (uint32_t)(to - text_of(form));
    }
    to = kpti_put_bytes(to, text + from, size - from);
    form->text_size = (uint32_t)(to - text_of(form));
    forget(f, &slots[1]);
    slots[1] = slots[0];
    slots[0] = form;
    f->bytes += bytes;
}

/* Writes the content of the hole for the value at AT. */
static char *fill(kpti_et_forms *f, char *to, const uint64_t *at)
{
    const kpt_tape_value head = kpti_et_value_head(at);
    const kpti_et_name *name;
    if (head.kind == KPT_VALUE_DOUBLE) return kpti_et_put_real(&f->naming.reals, to, at[1]);
    if (!kpti_et_is_tensor(head)) return kpti_put_i64(to, (int64_t)at[1]);
    name = kpti_et_tensor_name(&f->naming.tensors, f->taken.item, at);
    memcpy(to, name->text, sizeof name->text);
    return to + name->size;
}

static void put_form(kpti_et_forms *f, kpti_et_text *out, kpti_et_form *form)
{
    const uint32_t *holes = holes_of(form);
    const char *text = text_of(form);
    const uint32_t count = form->hole_count;
    uint32_t from = 0;
    char *to = kpti_et_text_reserve(out, form->text_size + ((size_t)count + 1) * KPTI_ET_MAX_HOLE);
    if (!to) return;
    for (uint32_t i = 0; i < count; i++) {
        to = kpti_et_copy(to, text + from, holes[i] - from);
        to = fill(f, to, f->values[i]);
        from = holes[i];
    }
    kpti_et_text_wrote(out, kpti_et_copy(to, text + from, form->text_size - from));
}

void kpti_et_forms_put(kpti_et_forms *f, kpti_et_text *out)
{
    const kpti_et_taken *taken = &f->taken;
    const size_t before = out->used;
    kpti_et_form *form = taken->word_count ? find(f) : NULL;
    if (!taken->count) {
        KPTI_ET_PUT(out, "{\"values\":[],\"shapes\":[],\"types\":[],\"strides\":[]}");
    } else if (form) {
        put_form(f, out, form);
    } else {
        kpti_et_put_values(&f->naming, out, taken->item, taken->at, taken->count,
                           taken->word_count ? f->holes : NULL);
        if (taken->word_count && !out->failed && out->used - before < MAX_TEXT)
            keep(f, out->data + before, out->used - before);
    }
}
