#include "writers/deflate/deflate_block.h"

#include "core/base/assert.h"
#include "writers/deflate/huffman.h"

enum {
    END = KPTI_DEFLATE_LITERALS,
    FIRST_LENGTH = END + 1,
    CODE_MAX_BITS = 15,
    /* Code sizes are sent as themselves, or as one of these symbols, which repeat. */
    REPEAT = 16,
    FEW_ZEROES = 17,
    MANY_ZEROES = 18,
    SIZE_SYMBOLS = 19,
    SIZE_MAX_BITS = 7,
    MAX_SIZES = KPTI_DEFLATE_SYMBOLS + KPTI_DEFLATE_DISTANCE_SLOTS,
};

/* The kinds of a block. The bit before the kind marks the last block. */
enum { STORED = 0, DYNAMIC = 2 };

static const uint8_t size_order[SIZE_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                 11, 4,  12, 3, 13, 2, 14, 1, 15};

typedef struct item {
    uint8_t symbol;
    uint8_t extra;
} item;

/* The codes of a block, and their encoding. */
typedef struct plan {
    kpti_code symbols[KPTI_DEFLATE_SYMBOLS];
    kpti_code distances[KPTI_DEFLATE_DISTANCE_SLOTS];
    kpti_code sizes[SIZE_SYMBOLS];
    uint32_t symbol_count, distance_count, size_count; /* without unused codes at the end */
    item items[MAX_SIZES];
    uint32_t item_count;
} plan;

static uint32_t extra_bits(uint32_t size_symbol)
{
    return size_symbol == REPEAT ? 2 : size_symbol == FEW_ZEROES ? 3 : 7;
}

static uint32_t length_slot_bits(uint32_t slot)
{
    return slot < 8 || slot == 28 ? 0 : (slot >> 2) - 1;
}

static uint32_t distance_slot_bits(uint32_t slot)
{
    return slot < 4 ? 0 : (slot >> 1) - 1;
}

/* --- the plan --------------------------------------------------------------------------------- */

static void add_item(plan *p, uint32_t *frequencies, uint32_t symbol, uint32_t extra)
{
    p->items[p->item_count++] = (item){(uint8_t)symbol, (uint8_t)extra};
    frequencies[symbol]++;
}

static uint32_t min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Adds RUN codes of one size. */
static void add_run(plan *p, uint32_t *frequencies, uint32_t size, uint32_t run)
{
    while (!size && run >= 3) {
        const uint32_t zeroes = min(run, 138);
        if (zeroes < 11)
            add_item(p, frequencies, FEW_ZEROES, zeroes - 3);
        else
            add_item(p, frequencies, MANY_ZEROES, zeroes - 11);
        run -= zeroes;
    }
    if (size) {
        add_item(p, frequencies, size, 0);
        run--;
    }
    while (size && run >= 3) {
        const uint32_t repeated = min(run, 6);
        add_item(p, frequencies, REPEAT, repeated - 3);
        run -= repeated;
    }
    for (; run; run--)
        add_item(p, frequencies, size, 0);
}

static uint32_t used_codes(const kpti_code *codes, uint32_t count)
{
    while (!codes[count - 1].size)
        count--;
    return count;
}

static void plan_sizes(plan *p)
{
    uint32_t frequencies[SIZE_SYMBOLS] = {0};
    uint8_t sizes[MAX_SIZES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->symbol_count; i++)
        sizes[count++] = (uint8_t)p->symbols[i].size;
    for (uint32_t i = 0; i < p->distance_count; i++)
        sizes[count++] = (uint8_t)p->distances[i].size;
    p->item_count = 0;
    for (uint32_t at = 0, end; at < count; at = end) {
        for (end = at + 1; end < count && sizes[end] == sizes[at];)
            end++;
        add_run(p, frequencies, sizes[at], end - at);
    }
    kpti_huffman_make(frequencies, SIZE_SYMBOLS, SIZE_MAX_BITS, p->sizes);
    p->size_count = SIZE_SYMBOLS;
    while (p->size_count > 4 && !p->sizes[size_order[p->size_count - 1]].size)
        p->size_count--;
}

static void make_plan(plan *p, kpti_deflate_block *block)
{
    block->symbols[END] = 1;
    kpti_huffman_make(block->symbols, KPTI_DEFLATE_SYMBOLS, CODE_MAX_BITS, p->symbols);
    kpti_huffman_make(block->distances, KPTI_DEFLATE_DISTANCE_SLOTS, CODE_MAX_BITS, p->distances);
    p->symbol_count = used_codes(p->symbols, KPTI_DEFLATE_SYMBOLS);
    p->distance_count = used_codes(p->distances, KPTI_DEFLATE_DISTANCE_SLOTS);
    plan_sizes(p);
}

/* Returns the size of the block in bits with this plan. */
static uint64_t planned_bits(const plan *p, const kpti_deflate_block *block)
{
    uint64_t bits = 3 + 5 + 5 + 4 + 3 * p->size_count;
    for (uint32_t i = 0; i < p->item_count; i++) {
        const uint32_t symbol = p->items[i].symbol;
        bits += p->sizes[symbol].size + (symbol < REPEAT ? 0 : extra_bits(symbol));
    }
    for (uint32_t i = 0; i < KPTI_DEFLATE_SYMBOLS; i++) {
        const uint32_t extra = i < FIRST_LENGTH ? 0 : length_slot_bits(i - FIRST_LENGTH);
        bits += (uint64_t)block->symbols[i] * (p->symbols[i].size + extra);
    }
    for (uint32_t i = 0; i < KPTI_DEFLATE_DISTANCE_SLOTS; i++)
        bits += (uint64_t)block->distances[i] * (p->distances[i].size + distance_slot_bits(i));
    return bits;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_plan(kpti_bits *bits, const plan *p)
{
    kpti_bits_put(bits, DYNAMIC << 1, 3);
    kpti_bits_put(bits, p->symbol_count - FIRST_LENGTH, 5);
    kpti_bits_put(bits, p->distance_count - 1, 5);
    kpti_bits_put(bits, p->size_count - 4, 4);
    for (uint32_t i = 0; i < p->size_count; i++) {
        kpti_bits_flush(bits);
        kpti_bits_put(bits, p->sizes[size_order[i]].size, 3);
    }
    for (uint32_t i = 0; i < p->item_count; i++) {
        const item *it = &p->items[i];
        kpti_bits_flush(bits);
        kpti_bits_put(bits, p->sizes[it->symbol].bits, p->sizes[it->symbol].size);
        if (it->symbol >= REPEAT) kpti_bits_put(bits, it->extra, extra_bits(it->symbol));
    }
    kpti_bits_flush(bits);
}

/* The code of a length with its extra bits, so that one table lookup suffices. */
typedef struct length_code {
    uint32_t bits;
    uint32_t size;
} length_code;

static void make_lengths(const plan *p, length_code *lengths)
{
    for (uint32_t i = KPTI_DEFLATE_MIN_LENGTH; i <= KPTI_DEFLATE_MAX_LENGTH; i++) {
        const uint32_t slot = kpti_deflate_length_slot(i);
        const kpti_code code = p->symbols[FIRST_LENGTH + slot];
        const uint32_t extra = length_slot_bits(slot);
        const uint32_t rest = (i - KPTI_DEFLATE_MIN_LENGTH) & ((1u << extra) - 1);
        lengths[i] = (length_code){code.bits | rest << code.size, code.size + extra};
    }
}

static inline void put_code(kpti_bits *bits, kpti_code code)
{
    kpti_bits_put(bits, code.bits, code.size);
}

/* Three codes have at most 45 bits. */
static inline void put_literals(kpti_bits *bits, const plan *p, const uint8_t *at, size_t count)
{
    for (; count >= 3; count -= 3, at += 3) {
        put_code(bits, p->symbols[at[0]]);
        put_code(bits, p->symbols[at[1]]);
        put_code(bits, p->symbols[at[2]]);
        kpti_bits_flush(bits);
    }
    for (; count; count--)
        put_code(bits, p->symbols[*at++]);
    kpti_bits_flush(bits);
}

static void put_data(kpti_bits *out, const plan *p, const kpti_deflate_block *block)
{
    const uint8_t *at = block->data;
    length_code lengths[KPTI_DEFLATE_MAX_LENGTH + 1];
    kpti_bits bits = *out; /* a local copy, kept in registers */
    make_lengths(p, lengths);
    for (size_t i = 0; i < block->sequence_count; i++) {
        const kpti_sequence s = block->sequences[i];
        const uint32_t slot = kpti_deflate_distance_slot(s.distance);
        const uint32_t extra = kpti_deflate_extra(s.distance - 1u, 1);
        put_literals(&bits, p, at, s.literals);
        /* At most 20 and 28 bits. */
        kpti_bits_put(&bits, lengths[s.length].bits, lengths[s.length].size);
        put_code(&bits, p->distances[slot]);
        kpti_bits_put(&bits, (s.distance - 1u) & ((1u << extra) - 1), extra);
        kpti_bits_flush(&bits);
        at += s.literals + s.length;
    }
    put_literals(&bits, p, at, (size_t)(block->data + block->size - at));
    put_code(&bits, p->symbols[END]);
    kpti_bits_flush(&bits);
    *out = bits;
}

static void put_stored(kpti_bits *bits, const uint8_t *data, size_t size)
{
    kpti_bits_put(bits, STORED << 1, 3);
    kpti_bits_align(bits);
    kpti_bits_put(bits, size | (~size & 0xFFFF) << 16, 32);
    kpti_bits_flush(bits);
    memcpy(bits->at, data, size);
    bits->at += size;
}

/* Whether the sequences are legal in deflate, cover at most the block, and are all counted. */
static inline int is_valid(const kpti_deflate_block *block)
{
    size_t covered = 0;
    uint64_t literals = block->size;
    for (size_t i = 0; i < block->sequence_count; i++) {
        const kpti_sequence s = block->sequences[i];
        if (s.length < KPTI_DEFLATE_MIN_LENGTH || s.length > KPTI_DEFLATE_MAX_LENGTH) return 0;
        if (s.distance < 1 || s.distance > KPTI_DEFLATE_MAX_DISTANCE) return 0;
        covered += s.literals + s.length;
        literals -= s.length;
    }
    for (uint32_t i = 0; i < KPTI_DEFLATE_LITERALS; i++)
        literals -= block->symbols[i];
    return covered <= block->size && literals == 0 && block->size < (size_t)1 << 23;
}

void kpti_deflate_block_put(kpti_bits *bits, kpti_deflate_block *block)
{
    plan p;
    const size_t pieces = block->size / KPTI_DEFLATE_STORED_MAX + 1;
    kpti_assert(is_valid(block));
    make_plan(&p, block);
    if (planned_bits(&p, block) <= 8 * (uint64_t)block->size + 40 * pieces) {
        put_plan(bits, &p);
        put_data(bits, &p, block);
        return;
    }
    for (size_t at = 0; at < block->size;) {
        const size_t left = block->size - at;
        const size_t step = left < KPTI_DEFLATE_STORED_MAX ? left : KPTI_DEFLATE_STORED_MAX;
        put_stored(bits, block->data + at, step);
        at += step;
    }
}

void kpti_deflate_align(kpti_bits *bits)
{
    put_stored(bits, (const uint8_t *)"", 0);
}
