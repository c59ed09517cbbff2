/* traceback_json.c: symbolized tracebacks as JSON text. It makes no Python object but the text. Each frame is
 * written once and then copied. */
#include "hosts/standalone/module/traceback/traceback_json.h"

#include <stdlib.h>

#include "abi/kpt_text.h"
#include "hosts/standalone/module/traceback/symbolize_batch.h"
#include "hosts/standalone/module/traceback/traceback_dicts.h"
#include "hosts/standalone/session/shared_tracebacks.h"
#include "writers/encode/json_text.h"

typedef struct pieces {
    char *text;     /* the JSON of all symbols, concatenated */
    uint64_t *ends; /* the end of each symbol's JSON */
} pieces;

/* The maximum size of the keys, commas and numbers of a frame. */
enum { FRAME_BYTES = 512 };

static uint64_t most_bytes(const kpt_symbols *symbols)
{
    uint64_t max = 1;
    for (uint64_t i = 0; i < symbols->symbol_count; i++) {
        const kpt_symbol *s = kpti_symbol_at(symbols, i);
        max +=
            FRAME_BYTES + KPTI_JSON_MAX_GROWTH * (s->name.size + s->qualname.size + s->file.size);
    }
    return max;
}

static char *put_text(char *out, const char *text)
{
    const kpt_str bytes = kpt_str_of(text);
    memcpy(out, bytes.data, bytes.size);
    return out + bytes.size;
}

static char *put_key(char *out, int key)
{
    *out++ = key ? ',' : '{';
    *out++ = '"';
    out = put_text(out, kpti_frame_keys[key]);
    return put_text(out, "\":");
}

static char *put_string(char *out, int key, kpt_str value)
{
    out = put_key(out, key);
    *out++ = '"';
    if (value.size) out = kpti_json_escape(out, value.data, value.size);
    *out++ = '"';
    return out;
}

static char *put_number(char *out, int key, uint64_t value, uint64_t unknown)
{
    out = put_key(out, key);
    return value == unknown ? put_text(out, "null") : kpti_put_u64(out, value);
}

static char *put_frame(char *out, const kpt_symbol *s)
{
    const uint32_t kind = s->kind < KPTI_KINDS ? s->kind : KPT_SYMBOL_NATIVE;
    out = put_string(out, KPTI_KEY_NAME, s->name);
    out = put_string(out, KPTI_KEY_FILENAME, s->file);
    out = put_number(out, KPTI_KEY_LINE, s->line, UINT64_MAX);
    out = put_string(out, KPTI_KEY_QUALNAME, s->qualname.size ? s->qualname : s->name);
    out = put_number(out, KPTI_KEY_FIRST_LINE, s->first_line, 0);
    out = put_number(out, KPTI_KEY_END_LINE, s->end_line, 0);
    out = put_number(out, KPTI_KEY_COLUMN, s->column, KPT_NO_COLUMN);
    out = put_number(out, KPTI_KEY_END_COLUMN, s->end_column, KPT_NO_COLUMN);
    out = put_string(out, KPTI_KEY_KIND, kpt_str_of(kpti_frame_kinds[kind]));
    if (kpti_key_of_kind(kind) < KPTI_KEYS)
        out = put_number(out, kpti_key_of_kind(kind), s->address, UINT64_MAX);
    *out++ = '}';
    return out;
}

static int write_pieces(pieces *p, const kpt_symbols *symbols)
{
    char *out;
    p->text = malloc(most_bytes(symbols));
    p->ends = calloc(symbols->symbol_count + 1, sizeof *p->ends);
    if (!p->text || !p->ends) return 0;
    out = p->text;
    for (uint64_t i = 0; i < symbols->symbol_count; i++) {
        out = put_frame(out, kpti_symbol_at(symbols, i));
        p->ends[i] = (uint64_t)(out - p->text);
    }
    return 1;
}

static uint64_t piece_begin(const pieces *p, uint32_t symbol)
{
    return symbol ? p->ends[symbol - 1] : 0;
}

/* The size of the result with brackets and commas. */
static uint64_t text_size(const kpti_batch *batch, const pieces *p, const kpt_symbols *symbols)
{
    uint64_t size = 2;
    for (uint64_t i = 0; i < batch->count; i++) {
        const kpt_symbol_span span = kpti_shown(batch, i, symbols);
        size += 3 + span.count;
        for (uint64_t j = 0; j < span.count; j++) {
            const uint32_t symbol = symbols->frames[span.first + j];
            size += p->ends[symbol] - piece_begin(p, symbol);
        }
    }
    return size;
}

static char *put_stack(char *out, const pieces *p, const kpt_symbols *symbols, kpt_symbol_span span)
{
    *out++ = '[';
    for (uint64_t j = 0; j < span.count; j++) {
        const uint32_t symbol = symbols->frames[span.first + j];
        const uint64_t begin = piece_begin(p, symbol);
        if (j) *out++ = ',';
        memcpy(out, p->text + begin, p->ends[symbol] - begin);
        out += p->ends[symbol] - begin;
    }
    *out++ = ']';
    return out;
}

/* Returns the whole text, or NULL if there is no memory. */
static char *write_stacks(const kpti_batch *batch, const pieces *p, const kpt_symbols *symbols,
                          uint64_t *size)
{
    char *text = malloc(text_size(batch, p, symbols));
    char *out = text;
    if (!text) return NULL;
    if (!batch->single) *out++ = '[';
    for (uint64_t i = 0; i < batch->count; i++) {
        if (i) *out++ = ',';
        out = put_stack(out, p, symbols, kpti_shown(batch, i, symbols));
    }
    if (!batch->single) *out++ = ']';
    *size = (uint64_t)(out - text);
    return text;
}

kpt_status kpti_traceback_json(void *ctx, const kpt_symbols *symbols)
{
    kpti_batch *batch = ctx;
    pieces p = {NULL, NULL};
    char *text = NULL;
    uint64_t size = 0;
    if (!kpti_symbols_are_whole(symbols, batch->count)) return KPT_E_INTERNAL;
    if (write_pieces(&p, symbols)) text = write_stacks(batch, &p, symbols, &size);
    free(p.text);
    free(p.ends);
    kpti_batch_take_gil(batch);
    if (text) batch->result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
    kpti_batch_give_gil(batch);
    free(text);
    return batch->result ? KPT_OK : KPT_E_MEMORY;
}
