/* memory_fuzz.c: bytes as the records of a recording of memory, from which an output is made. Whatever the records hold,
 * reading them ends in a file or a refusal, and time never goes backwards.
 *
 * An input is a byte, which selects the output, or the entries alone, or events that are packed and unpacked again. Records
 * follow, but for the last: a byte selects what a record is, see put_record(). Names that refer to each other are made here, so that a fuzzer soon has
 * events with stacks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/varint.h"
#include "tests/native/fuzz/input.h"
#include "writers/memory/memory_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRIES = 4, STEPS = 5 }; /* the outputs before them are files */
enum { MAX_RECORDS = 256, MAX_RECORD = 1 << 16, MAX_STEPS = 1024 };

/* --- records ------------------------------------------------------------------------------------ */

/* Their memory ends with their last byte, so that a read behind it is seen. */
typedef struct records {
    struct {
        char *bytes;
        uint64_t size;
    } all[MAX_RECORDS];
    uint32_t count;
    uint32_t at;
} records;

typedef struct buffer {
    char bytes[MAX_RECORD];
    size_t size;
} buffer;

static void put(buffer *b, const void *bytes, size_t size)
{
    if (size > sizeof b->bytes - b->size) size = sizeof b->bytes - b->size;
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static void put_some(buffer *b, input *in, size_t size)
{
    for (; size > 0; size--) {
        const char byte = (char)take(in, 1);
        put(b, &byte, 1);
    }
}

static void put_number(buffer *b, uint64_t value)
{
    char bytes[KPTI_MAX_VARINT];
    put(b, bytes, (size_t)(kpti_put_varint(bytes, value) - bytes));
}

static void put_text(buffer *b, input *in)
{
    const size_t size = (size_t)take(in, 1) % 16;
    put_number(b, size);
    put_some(b, in, size);
}

static void put_name(buffer *b, input *in)
{
    static const char letters[] = {KPTI_MEMORY_TEXT, KPTI_MEMORY_SYMBOL, KPTI_MEMORY_NODE,
                                   KPTI_MEMORY_POOL};
    const char *letter = &letters[take(in, 1) % sizeof letters];
    put(b, letter, 1);
    if (*letter == KPTI_MEMORY_TEXT) {
        put_text(b, in);
        return;
    }
    for (int i = *letter == KPTI_MEMORY_NODE; i < 3; i++)
        put_number(b, take(in, 1));
    if (*letter != KPTI_MEMORY_POOL) return;
    put_number(b, take(in, 2)); /* the stream */
    put_text(b, in);
    put_text(b, in);
}

static void put_state(buffer *b, input *in)
{
    const kpti_memory_state state = {take(in, 8), (int64_t)take(in, 8), (int64_t)take(in, 8),
                                     take(in, 4), take(in, 1),          take(in, 1),
                                     take(in, 3)};
    put(b, &state, sizeof state);
}

static void put_record(records *r, input *in)
{
    static buffer b;
    kpti_memory_record head = {(uint32_t)take(in, 1), 1, 0, 0};
    const int is_as_it_is = head.what & 4;
    head.what &= 3;
    b.size = 0;
    if (head.what) head.count = (uint32_t)take(in, 2);
    if (head.what == KPTI_MEMORY_EVENTS) head.shift = (uint32_t)take(in, 1) % 24;
    put(&b, &head, sizeof head);
    if (is_as_it_is || head.what == KPTI_MEMORY_EVENTS)
        put_some(&b, in, (size_t)take(in, 2) % 4096);
    else if (head.what == KPTI_MEMORY_NAMES)
        for (uint32_t i = 0; i < head.count; i++)
            put_name(&b, in);
    else if (head.what == KPTI_MEMORY_STATE)
        put_state(&b, in);
    if (!head.what) b.size = (size_t)take(in, 1) % (b.size + 1); /* too short, or unknown */
    r->all[r->count].bytes = malloc(b.size ? b.size : 1);
    if (!r->all[r->count].bytes) abort();
    memcpy(r->all[r->count].bytes, b.bytes, b.size);
    r->all[r->count++].size = b.size;
}

static void rewind_records(void *ctx)
{
    ((records *)ctx)->at = 0;
}

static int next_record(void *ctx, const char **bytes, uint64_t *size)
{
    records *r = ctx;
    if (r->at == r->count) return 0;
    *bytes = r->all[r->at].bytes;
    *size = r->all[r->at++].size;
    return 1;
}

/* --- their outputs ------------------------------------------------------------------------------ */

/* Entries are numbered, and each free of a block follows the block's allocation. */
static void check_entries(kpti_memory_history *history)
{
    kpti_memory_entry e;
    uint64_t count = 0;
    uint64_t live = 0;
    kpti_memory_history_first(history);
    while (kpti_memory_history_next(history, &e)) {
        if (e.index != count++ || e.stack > history->names.node_count ||
            e.device >= history->names.device_count)
            abort();
        if (live < (uint64_t)e.ends) abort();
        live = live - (uint64_t)e.ends + (e.kind & KPTI_MEMORY_ALLOC ? 1 : 0);
    }
    if (history->failed || count > history->count) abort();
}

static void convert(records *r, uint32_t output)
{
    static const char *const names[] = {"a.pickle", "a.tables.json", "a.json", "a.pftrace"};
    const kpti_memory_records from = {r, rewind_records, next_record};
    kpti_memory_history history;
    const kpt_status status = kpti_memory_history_open(&history, &from, 0);
    if (status != KPT_OK && status != KPT_E_INVALID) abort();
    if (status == KPT_OK) {
        const kpti_memory_write_fn write =
            output < ENTRIES ? kpti_memory_writer_of(names[output]) : NULL;
        if (output == ENTRIES)
            check_entries(&history);
        else if (!write || kpti_memory_write_file(&history, write, "/dev/null") != 0)
            abort();
    }
    kpti_memory_history_close(&history);
}

/* --- events that are packed --------------------------------------------------------------------- */

/* Few addresses, sizes and stacks, so that blocks are freed and predictions come true. */
static kpti_memory_step take_step(input *in, uint64_t ticks)
{
    const uint32_t what = (uint32_t)take(in, 1);
    kpti_memory_step step = {.ticks = ticks,
                             .address = take(in, 1) * 16 + (what & 8 ? take(in, 7) : 0),
                             .os_tid = what >> 4 & 3,
                             .pool = (uint16_t)(what & 64 ? take(in, 2) % 4096 : what >> 1 & 3)};
    step.kind = what & 1 ? KPTI_MEMORY_FREE : KPTI_MEMORY_ALLOC;
    if (step.kind == KPTI_MEMORY_FREE) return step;
    step.size = what & 128 ? take(in, 6) : take(in, 1);
    step.stack = (uint32_t)take(in, 1);
    if (what & 32) step.kind |= KPTI_MEMORY_RESIZED;
    return step;
}

/* All pools are of one space: a free has that of its block. */
static int is_same(const kpti_memory_step *a, const kpti_memory_step *b, uint32_t shift)
{
    return a->address == b->address && a->size == b->size && a->os_tid == b->os_tid &&
           a->stack == b->stack && a->kind == b->kind &&
           (a->pool == b->pool || a->kind == KPTI_MEMORY_FREE) && b->ticks <= a->ticks &&
           a->ticks - b->ticks < UINT64_C(1) << shift;
}

static void pack_and_unpack(input *in)
{
    static const uint32_t spaces[KPTI_MEMORY_POOL_COUNT];
    static unsigned char packed[MAX_STEPS * KPTI_MEMORY_MAX_STEP];
    static kpti_memory_step steps[MAX_STEPS];
    kpti_memory_packer *packer = calloc(1, sizeof *packer);
    kpti_memory_model *model = calloc(1, sizeof *model);
    const uint32_t shift = (uint32_t)take(in, 1) % (KPTI_MEMORY_MAX_SHIFT + 1);
    const unsigned char *at = packed;
    unsigned char *end = packed;
    uint64_t ticks = 0;
    uint32_t count = 0;
    if (!packer || !model) abort();
    packer->spaces = spaces;
    while (count < MAX_STEPS && in->at < in->end) {
        unsigned char *begin = end;
        steps[count] = take_step(in, ticks += take(in, 2));
        end = kpti_memory_pack(packer, begin, shift, &steps[count]);
        if (end > begin + KPTI_MEMORY_MAX_STEP) abort();
        count += end != begin;
    }
    for (uint32_t i = 0; i < count; i++) {
        kpti_memory_step step;
        at = kpti_memory_unpack(model, at, end, shift, &step);
        if (!at || !is_same(&steps[i], &step, shift)) abort();
    }
    if (at != end) abort();
    free(packer);
    free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static records r;
    input in = {data, data + size};
    const uint32_t output = (uint32_t)take(&in, 1) % (STEPS + 1);
    if (output == STEPS) {
        pack_and_unpack(&in);
        return 0;
    }
    r.count = r.at = 0;
    while (in.at < in.end && r.count < MAX_RECORDS)
        put_record(&r, &in);
    convert(&r, output);
    while (r.count > 0)
        free(r.all[--r.count].bytes);
    return 0;
}
