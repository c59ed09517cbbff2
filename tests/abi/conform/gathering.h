/* gathering.h: helpers of the rules on tracebacks: a gatherer, a host that reports frames of its own
 * language, a Python program to gather in, and a copy of the symbols that symbolize delivers. */
#ifndef GATHERING_H
#define GATHERING_H

#include "tests/abi/conform/conform.h"

/* The frames that the host's script_frames reports: frame I is told_name(I), in TOLD_FILE, on line
 * TOLD_LINE + I. */
typedef struct script_host {
    uint32_t count;
    uint32_t calls;
} script_host;

#define TOLD_FILE "program.script"
enum { TOLD_LINE = 10, TOLD_TEXT = 32 };
/* Selects one of two names for each of this thread's frames, by the bit of the frame's number. */
extern _Thread_local uint32_t told_pattern;
void told_name(char name[TOLD_TEXT], uint32_t frame);

/* Make a gatherer whose host reports the frames of HOST, or none if HOST is NULL. */
kpt_traceback_maker gathering_maker(conform *c);
kpt_tracebacks gathering_make(conform *c, script_host *host);
kpt_tracebacks gathering_make_generating(conform *c, kpt_generated_fn generated, void *ctx);
/* The same; the rule is not reached if the gatherer is a no-op. */
kpt_tracebacks gathering_make_real(conform *c, script_host *host);

kpt_traceback gathering_gather(conform *c, const kpt_tracebacks *t, uint32_t what, uint32_t depth);

/* Runs CALL in inner(), which outer() has called, with the GIL. If there is no Python, a plugin may
 * simulate that program. */
void gathering_in_program(conform *c, void (*call)(void *ctx), void *ctx);
enum { INNER_LINE = 2, OUTER_LINE = 4 };

/* --- the symbols that symbolize delivered -------------------------------------------------------- */

enum { MAX_SYMBOLS = 256, MAX_FRAMES = 1024, MAX_SPANS = 16, SYMBOL_TEXT = 64 };

typedef struct symbol_copy {
    char name[SYMBOL_TEXT]; /* truncated */
    char qualname[SYMBOL_TEXT];
    char file[SYMBOL_TEXT];
    kpt_symbol is; /* without its strings */
} symbol_copy;

typedef struct symbol_log {
    kpt_status answer; /* the sink's return value */
    uint32_t calls;
    const char *wrong; /* what is invalid, or NULL */
    uint64_t symbol_count;
    uint64_t frame_count;
    uint64_t span_count;
    symbol_copy symbols[MAX_SYMBOLS];
    uint32_t frames[MAX_FRAMES];
    kpt_symbol_span spans[MAX_SPANS];
} symbol_log;

/* A kpt_symbols_fn, whose ctx is a log. Afterwards all indices and spans are in range, or WRONG states that
 * they are not. */
kpt_status symbol_log_take(void *log, const kpt_symbols *symbols);

/* Symbolizes COUNT tracebacks into a new log. The sink must be called once, with valid symbols. */
const symbol_log *gathering_read(conform *c, const kpt_tracebacks *t, const kpt_traceback *some,
                                 uint64_t count);
const symbol_log *gathering_read_numbers(conform *c, const kpt_tracebacks *t,
                                         const uint32_t *numbers, uint64_t count);
/* Returns frame I of a traceback, innermost first; with KIND, among the frames of that kind, or NULL behind
 * the last. */
const symbol_copy *symbol_log_at(const symbol_log *log, uint64_t span, uint64_t i);
const symbol_copy *symbol_log_of_kind(const symbol_log *log, uint64_t span, uint32_t kind,
                                      uint64_t i);
uint64_t symbol_log_count(const symbol_log *log, uint64_t span, uint32_t kind);
int symbol_log_equal(const symbol_copy *a, const symbol_copy *b);

#endif
