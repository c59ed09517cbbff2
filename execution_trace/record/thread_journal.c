#include "execution_trace/record/thread_journal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/hash.h"

/* Longer texts are truncated: a chunk's offsets have 32 bits, and no reader needs more. */
enum { MAX_TEXT = 16 << 20 };

/* Returns the first of the two slots that TEXT may be in. */
static kpti_et_known_text *slot_of(kpti_et_stream *s, kpt_str text)
{
    const uint64_t mixed = kpti_hash_spread((uint64_t)(uintptr_t)text.data ^ text.size << 40);
    return &s->texts[mixed >> 56 << 1];
}
_Static_assert(KPTI_ET_TEXTS == 2 << (64 - 56), "slot_of takes as many bits");

/* Most texts are short, and a call would take longer than the comparison. The last comparison may overlap
 * the one before it. */
static inline int is_equal(const char *a, const char *b, uint64_t size)
{
    enum { EIGHT = sizeof(uint64_t), FOUR = sizeof(uint32_t) };
    if (size >= EIGHT) {
        for (uint64_t at = 0; at < size - EIGHT; at += EIGHT)
            if (memcmp(a + at, b + at, EIGHT) != 0) return 0;
        return memcmp(a + size - EIGHT, b + size - EIGHT, EIGHT) == 0;
    }
    if (size >= FOUR)
        return memcmp(a, b, FOUR) == 0 && memcmp(a + size - FOUR, b + size - FOUR, FOUR) == 0;
    while (size && a[size - 1] == b[size - 1])
        size--;
    return size == 0;
}

static inline int is_known(const kpti_et_cursor *c, kpt_str text, const kpti_et_known_text *slot)
{
    return slot->data == text.data && slot->size == text.size && slot->at && c->capacity &&
           is_equal((const char *)((uint64_t *)c->stream->chunk + slot->at + 1), text.data,
                    text.size);
}

/* Allocates WORDS at the end of the chunk, for data that records refer to; *AT receives their offset.
 * Returns NULL if there is no space. The words stay if the record does not fit, so they must leave space
 * for the smallest end. */
static uint64_t *add_words(kpti_et_cursor *c, uint64_t words, uint32_t *at)
{
    kpti_et_stream *s = c->stream;
    if (c->low + KPTI_ET_MIN_END + words > c->capacity || s->high > UINT32_MAX) {
        c->missing += words;
        return NULL;
    }
    kpti_assert(s->chunk && c->capacity <= s->high);
    s->high -= words;
    c->capacity -= words;
    *at = (uint32_t)s->high;
    return (uint64_t *)s->chunk + s->high;
}

static uint32_t add_text(kpti_et_cursor *c, kpt_str text, kpti_et_known_text *slot)
{
    uint32_t where;
    uint64_t *at = add_words(c, 1 + kpti_et_words(text.size), &where);
    if (!at) return 0;
    at[0] = text.size;
    memcpy(at + 1, text.data, text.size);
    *slot = (kpti_et_known_text){text.data, (uint32_t)text.size, where};
    return where;
}

uint32_t kpti_et_put_text(kpti_et_cursor *c, kpt_str text)
{
    kpti_et_known_text *slot;
    kpti_et_known_text older;
    if (!text.size || !text.data) return 0;
    if (text.size > MAX_TEXT) text.size = MAX_TEXT;
    slot = slot_of(c->stream, text);
    if (is_known(c, text, slot)) return slot->at;
    older = slot[0];
    if (is_known(c, text, slot + 1))
        slot[0] = slot[1]; /* so that a third text replaces the other one */
    else if (!add_text(c, text, slot))
        return 0;
    slot[1] = older;
    return slot->at;
}

uint32_t kpti_et_put_function(kpti_et_cursor *c, const kpt_op *op)
{
    const kpti_et_function wanted = {.thread = op->thread,
                                     .forward_thread = op->forward_thread,
                                     .scope = op->scope,
                                     .name = kpti_et_put_text(c, op->name),
                                     .schema = kpti_et_put_text(c, op->schema),
                                     .kernel_backend = kpti_et_put_text(c, op->kernel_backend),
                                     .kernel_file = kpti_et_put_text(c, op->kernel_file),
                                     .is_call = (uint32_t)kpti_et_is_call(op)};
    uint32_t *known = &c->stream->functions[(wanted.name ^ wanted.schema) % KPTI_ET_FUNCTIONS];
    uint32_t at = *known;
    if (!at || !c->capacity ||
        memcmp((const uint64_t *)c->stream->chunk + at, &wanted, sizeof wanted) != 0) {
        uint64_t *words = add_words(c, sizeof wanted / KPTI_ET_WORD, &at);
        if (!words) return 0;
        memcpy(words, &wanted, sizeof wanted);
    }
    if (!c->missing) *known = at; /* the chunk has all texts of the function */
    return at;
}

void kpti_et_dedup_tensor(kpti_et_cursor *c, const kpt_tensor *t, uint64_t words)
{
    kpti_et_stream *s = c->stream;
    const uint64_t key = t->tensor_id ^ t->generation << 32;
    kpti_et_known_tensor *known = &s->tensors[kpti_hash_spread(key) >> 54];
    const uint64_t own = c->low - words;
    uint64_t *chunk = (uint64_t *)s->chunk;
    kpti_assert(!c->missing && words && own >= c->begin);
    if (known->at && known->id == (uint32_t)t->tensor_id && known->at + words <= own &&
        is_equal((const char *)(chunk + known->at), (const char *)(chunk + own),
                 words * KPTI_ET_WORD)) {
        const kpt_tape_value same = {.kind = KPT_TAPE_SAME, .size = known->at};
        memcpy(chunk + own, &same, sizeof same);
        c->low = own + 1;
    } else if (own <= UINT32_MAX) {
        *known = (kpti_et_known_tensor){(uint32_t)t->tensor_id, (uint32_t)own};
    }
}
_Static_assert(KPTI_ET_TENSORS == 1 << (64 - 54), "kpti_et_dedup_tensor takes as many bits");

void kpti_et_stream_abort_record(kpti_et_stream *s)
{
    memset(s->tensors, 0, sizeof s->tensors);
}

/* Returns a new serial, which makes all earlier positions on the tape invalid. */
static uint32_t new_serial(void)
{
    static _Atomic uint32_t last;
    const uint32_t serial = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return serial ? serial : new_serial();
}

void kpti_et_stream_move(kpti_et_stream *s, kpti_et_chunk *chunk)
{
    s->chunk = chunk;
    s->tape.base = (uint64_t *)chunk;
    s->tape.serial = new_serial();
    s->low = KPTI_ET_CHUNK_WORDS;
    s->high = chunk ? chunk->words : 0;
    kpti_assert(!s->pending.words); /* its tape would write to the old chunk */
    memset(s->texts, 0, sizeof s->texts);
    memset(s->functions, 0, sizeof s->functions);
    memset(s->tensors, 0, sizeof s->tensors);
}

void kpti_et_stream_reset(kpti_et_stream *s, uint64_t file, uint32_t index)
{
    kpti_et_stream_move(s, NULL);
    kpti_number_set_clear(&s->locations);
    kpti_number_set_clear(&s->stacks);
    s->file = file;
    s->index = index;
    s->next_words = KPTI_ET_ALIGN / KPTI_ET_WORD;
    s->run = s->number = s->last_stack = 0;
    s->open = 0;
    atomic_store_explicit(&s->ops, 0, memory_order_relaxed);
}

void kpti_et_stream_free(kpti_et_stream *s)
{
    kpti_et_stream_move(s, NULL);
    kpti_number_set_clear(&s->locations);
    kpti_number_set_clear(&s->stacks);
    free(s);
}
