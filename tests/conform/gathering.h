/* gathering.h: what the rules on tracebacks share: an object that gathers, a host that tells frames of
 * its own language, a Python program to be in, and a copy of what symbolize hands over. */
#ifndef GATHERING_H
#define GATHERING_H

#include "tests/conform/conform.h"

/* What the host's script_frames tells: frame I is tell_name(I), in TOLD_FILE, on line TOLD_LINE + I. */
typedef struct told {
    uint32_t count;
    uint32_t calls;
} told;

#define TOLD_FILE "program.script"
enum { TOLD_LINE = 10, TOLD_TEXT = 32 };
/* Which names this thread's frames have: one of two each, by the bit of its number. */
extern _Thread_local uint32_t told_pattern;
void told_name(char name[TOLD_TEXT], uint32_t frame);

/* An object that gathers, whose host tells TOLD (or nothing, if that is NULL). */
kpt_traceback_maker gathering_maker(conform *c);
kpt_tracebacks gathering_make(conform *c, told *host);
kpt_tracebacks gathering_make_generating(conform *c, kpt_generated_fn generated, void *ctx);
/* The same, and the rule is not reached if it is a no-op. */
kpt_tracebacks gathering_make_real(conform *c, told *host);

kpt_traceback gathering_gather(conform *c, const kpt_tracebacks *t, uint32_t what, uint32_t depth);

/* Runs CALL in inner(), which outer() has called, with the GIL; where there is no Python a plugin may
 * play that program. */
void gathering_in_program(conform *c, void (*call)(void *ctx), void *ctx);
enum { INNER_LINE = 2, OUTER_LINE = 4 };

/* --- what symbolize handed over ------------------------------------------------------------------ */

enum { MOST_SYMBOLS = 256, MOST_FRAMES = 1024, MOST_SPANS = 16, SYMBOL_TEXT = 64 };

typedef struct symbol_copy {
    char name[SYMBOL_TEXT]; /* cut */
    char qualname[SYMBOL_TEXT];
    char file[SYMBOL_TEXT];
    kpt_symbol is; /* without its strings */
} symbol_copy;

typedef struct symbol_log {
    kpt_status answer; /* the sink's */
    uint32_t calls;
    const char *wrong; /* what can't be, if anything */
    uint64_t symbol_count;
    uint64_t frame_count;
    uint64_t span_count;
    symbol_copy symbols[MOST_SYMBOLS];
    uint32_t frames[MOST_FRAMES];
    kpt_symbol_span spans[MOST_SPANS];
} symbol_log;

/* A kpt_symbols_fn, whose ctx is a log. Indices and spans are in range then, or WRONG says that they
 * are not. */
kpt_status symbol_log_take(void *log, const kpt_symbols *symbols);

/* Symbolizes COUNT of them into a new log: calls must be one, and nothing wrong. */
const symbol_log *gathering_read(conform *c, const kpt_tracebacks *t, const kpt_traceback *some,
                                 uint64_t count);
const symbol_log *gathering_read_numbers(conform *c, const kpt_tracebacks *t,
                                         const uint32_t *numbers, uint64_t count);
/* Frame I of a traceback, innermost first; of those of KIND alone, NULL behind the last. */
const symbol_copy *symbol_log_at(const symbol_log *log, uint64_t span, uint64_t i);
const symbol_copy *symbol_log_of_kind(const symbol_log *log, uint64_t span, uint32_t kind,
                                      uint64_t i);
uint64_t symbol_log_count(const symbol_log *log, uint64_t span, uint32_t kind);
int symbol_log_equal(const symbol_copy *a, const symbol_copy *b);

#endif
