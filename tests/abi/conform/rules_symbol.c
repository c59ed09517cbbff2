/* rules_symbol.c: R788–R793: tracebacks as symbols, and as numbers (since 1.1). */
#include "tests/abi/conform/gathering.h"

static void spans(conform *c)
{
    enum { SOME = 5, EMPTY = 3 };
    script_host host = {.count = 3};
    const kpt_tracebacks t = gathering_make_real(c, &host);
    kpt_traceback some[SOME] = {{0, 0, 0, 0}};
    const symbol_log *log;
    some[0] = some[2] = some[4] = gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
    told_pattern = 1; /* another innermost frame, and the same outer ones */
    some[1] = gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
    log = gathering_read(c, &t, some, SOME);
    EXPECT(c,
           memcmp(&log->spans[0], &log->spans[2], sizeof log->spans[0]) == 0 &&
               memcmp(&log->spans[0], &log->spans[4], sizeof log->spans[0]) == 0,
           "equal tracebacks have different spans");
    EXPECT(c, log->spans[0].count == host.count && log->spans[1].count == host.count,
           "the tracebacks have %u and %u frames", (unsigned)log->spans[0].count,
           (unsigned)log->spans[1].count);
    EXPECT(c, log->spans[EMPTY].count == 0, "the empty traceback has frames");
    for (uint64_t i = 0; i < log->symbol_count; i++)
        for (uint64_t k = 0; k < i; k++)
            EXPECT(c, !symbol_log_equal(&log->symbols[i], &log->symbols[k]), "%s has two symbols",
                   log->symbols[i].name);
    EXPECT(c, log->symbol_count == host.count + 1U, "there are %u symbols of %u frames",
           (unsigned)log->symbol_count, host.count + 1);
}

static void sinks(conform *c)
{
    static symbol_log log;
    const kpt_status answers[] = {1234, KPT_DECLINED, KPT_E_IO};
    const kpt_tracebacks t = gathering_make(c, NULL);
    const kpt_traceback one = {0, 0, 0, 0};
    const uint32_t number = 1;
    (void)gathering_read(c, &t, NULL, 0);
    (void)gathering_read_numbers(c, &t, NULL, 0);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        log.answer = answers[i];
        EXPECT_STATUS(c, answers[i], t.ops->symbolize(t.self, &one, 1, symbol_log_take, &log));
        EXPECT_STATUS(c, answers[i],
                      t.ops->symbolize_frames(t.self, NULL, 0, symbol_log_take, &log));
    }
    log.calls = 0;
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->symbolize(t.self, &one, 1, NULL, NULL));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->symbolize(t.self, NULL, 1, symbol_log_take, &log));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->symbolize_frames(t.self, &number, 1, NULL, NULL));
    EXPECT_STATUS(c, KPT_E_INVALID,
                  t.ops->symbolize_frames(t.self, NULL, 1, symbol_log_take, &log));
    EXPECT(c, log.calls == 0, "the sink was called despite invalid arguments");
}

typedef struct scene {
    conform *c;
    kpt_tracebacks t;
} scene;

/* Gathers the Python frames here; there are at least two. */
static kpt_traceback gather_python(const scene *s, uint64_t *count)
{
    const kpt_traceback got = gathering_gather(s->c, &s->t, KPT_GATHER_PYTHON, 0);
    EXPECT_STATUS(s->c, KPT_OK, s->t.ops->get_frames(s->t.self, &got, NULL, 0, count));
    if (*count < 2 && !s->c->libpython) conform_unreached(s->c, "the plugin finds no Python");
    EXPECT(s->c, *count >= 2 && *count <= MAX_SYMBOLS, "there are %u Python frames",
           (unsigned)*count);
    return got;
}

static void get_numbers(void *ctx)
{
    const scene *s = ctx;
    conform *c = s->c;
    const kpt_tracebacks_ops *o = s->t.ops;
    const kpt_traceback none = {0, 0, 0, 0};
    uint64_t count;
    uint64_t needed;
    const kpt_traceback got = gather_python(s, &count);
    uint32_t *all = mock_guarded(count * sizeof *all);
    uint32_t *one = mock_guarded(sizeof *one);
    EXPECT_STATUS(c, KPT_OK, o->get_frames(s->t.self, &got, all, count, &needed));
    EXPECT(c, needed == count, "get_frames reported %u frames, then %u", (unsigned)count,
           (unsigned)needed);
    EXPECT_STATUS(c, KPT_OK, o->get_frames(s->t.self, &got, one, 1, &needed));
    EXPECT(c, needed == count, "with a capacity of 1 get_frames reports %u frames, not %u",
           (unsigned)needed, (unsigned)count);
    EXPECT(c, *one == *all, "the first number differs");
    EXPECT_STATUS(c, KPT_OK, o->get_frames(s->t.self, &none, one, 1, &needed));
    EXPECT(c, needed == 0, "an empty traceback has %u frames", (unsigned)needed);
}

static void numbers(conform *c)
{
    static scene s;
    const kpt_traceback none = {0, 0, 0, 0};
    uint32_t number;
    uint64_t count;
    s.c = c;
    s.t = gathering_make(c, NULL);
    EXPECT_STATUS(c, KPT_E_INVALID, s.t.ops->get_frames(s.t.self, NULL, &number, 1, &count));
    EXPECT_STATUS(c, KPT_E_INVALID, s.t.ops->get_frames(s.t.self, &none, NULL, 1, &count));
    EXPECT_STATUS(c, KPT_E_INVALID, s.t.ops->get_frames(s.t.self, &none, &number, 1, NULL));
    if (s.t.flags & KPT_OBJECT_NOOP) conform_unreached(c, "it is a no-op");
    gathering_in_program(c, get_numbers, &s);
}

static void compare_numbers(void *ctx)
{
    const scene *s = ctx;
    conform *c = s->c;
    uint32_t all[MAX_SYMBOLS];
    uint64_t count;
    kpt_traceback got = gather_python(s, &count);
    const symbol_log *whole = gathering_read(c, &s->t, &got, 1);
    const symbol_log *single;
    EXPECT_STATUS(c, KPT_OK, s->t.ops->get_frames(s->t.self, &got, all, count, &count));
    EXPECT_STATUS(c, KPT_OK, s->t.ops->release(s->t.self, &got, 1));
    EXPECT_STATUS(c, KPT_OK, s->t.ops->free_dead(s->t.self, 0, NULL));
    if (count > MAX_SPANS) count = MAX_SPANS;
    single = gathering_read_numbers(c, &s->t, all, count);
    for (uint64_t i = 0; i < count; i++)
        EXPECT(c,
               single->spans[i].count == 1 && symbol_log_at(whole, 0, i) &&
                   symbol_log_equal(symbol_log_at(single, i, 0), symbol_log_at(whole, 0, i)),
               "frame %u differs if symbolized by its number", (unsigned)i);
}

static void by_number(conform *c)
{
    static symbol_log log;
    static scene s;
    const uint32_t never = UINT32_MAX;
    s.c = c;
    s.t = gathering_make(c, NULL);
    EXPECT_STATUS(c, KPT_E_INVALID,
                  s.t.ops->symbolize_frames(s.t.self, &never, 1, symbol_log_take, &log));
    EXPECT(c, log.calls == 0, "the sink was called for a number that get_frames never returned");
    if (s.t.flags & KPT_OBJECT_NOOP) conform_unreached(c, "it is a no-op");
    gathering_in_program(c, compare_numbers, &s);
}

/* Reports two generated frames for inner()'s line, and none for other lines. */
static void generate(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx)
{
    uint32_t *calls = ctx;
    ++*calls;
    if (line != INNER_LINE || !file.size) return;
    for (uint32_t i = 0; i < 2; i++) {
        char name[] = "node_0";
        char model[] = "model.txt";
        name[sizeof name - 2] = (char)('0' + i);
        add(add_ctx, kpt_str_of(name), kpt_str_of(model), 100 + i);
        memset(name, '!', sizeof name);
        memset(model, '!', sizeof model);
    }
}

static void expect_generated(conform *c, const symbol_log *log)
{
    const symbol_copy *inner = symbol_log_at(log, 0, 0);
    EXPECT(c, inner && inner->is.kind == KPT_SYMBOL_PYTHON && inner->is.line == INNER_LINE,
           "the first frame is not the Python one");
    for (uint32_t i = 0; i < 2; i++) {
        const symbol_copy *frame = symbol_log_at(log, 0, 1 + i);
        EXPECT(c, frame && frame->is.kind == KPT_SYMBOL_GENERATED,
               "the Python frame is not followed by a generated frame");
        EXPECT(c,
               strncmp(frame->name, "node_", 5) == 0 && frame->name[5] == (char)('0' + i) &&
                   strcmp(frame->file, "model.txt") == 0 && frame->is.line == 100 + i,
               "generated frame %u is %s in %s, line %u", i, frame->name, frame->file,
               frame->is.line);
    }
    EXPECT(c, symbol_log_count(log, 0, KPT_SYMBOL_GENERATED) == 2,
           "a frame was generated that the host did not return");
}

static void read_generated(void *ctx)
{
    const scene *s = ctx;
    conform *c = s->c;
    uint64_t count;
    uint32_t first;
    const kpt_traceback got = gather_python(s, &count);
    const symbol_log *log = gathering_read(c, &s->t, &got, 1);
    expect_generated(c, log);
    EXPECT(c, log->spans[0].count == count + 2, "expected %u frames and 2 generated ones, found %u",
           (unsigned)count, (unsigned)log->spans[0].count);
    EXPECT_STATUS(c, KPT_OK, s->t.ops->get_frames(s->t.self, &got, &first, 1, &count));
    expect_generated(c, gathering_read_numbers(c, &s->t, &first, 1));
}

static void generated(conform *c)
{
    static scene s;
    static uint32_t calls;
    s.c = c;
    s.t = gathering_make_generating(c, generate, &calls);
    if (s.t.flags & KPT_OBJECT_NOOP) conform_unreached(c, "it is a no-op");
    gathering_in_program(c, read_generated, &s);
    EXPECT(c, calls > 0, "the host's function for generated frames was not called");
}

static int count_visit(void *object, void *ctx)
{
    *(int *)ctx += object == NULL;
    return 0;
}

static void visit_and_clear(void *ctx)
{
    const scene *s = ctx;
    conform *c = s->c;
    const kpt_tracebacks_ops *o = s->t.ops;
    kpt_traceback got = gathering_gather(c, &s->t, KPT_GATHER_PYTHON, 0);
    const uint64_t before = gathering_read(c, &s->t, &got, 1)->spans[0].count;
    int nothings = 0;
    EXPECT_STATUS(c, KPT_E_INVALID, o->traverse(s->t.self, NULL, count_visit, &nothings));
    EXPECT_STATUS(c, KPT_E_INVALID, o->traverse(s->t.self, &got, NULL, NULL));
    EXPECT_STATUS(c, KPT_E_INVALID, o->clear(s->t.self, NULL));
    EXPECT_STATUS(c, KPT_OK, o->traverse(s->t.self, &got, count_visit, &nothings));
    EXPECT(c, nothings == 0, "a NULL was visited");
    EXPECT_STATUS(c, KPT_OK, o->clear(s->t.self, &got));
    EXPECT_STATUS(c, KPT_OK, o->traverse(s->t.self, &got, count_visit, &nothings));
    EXPECT(c, gathering_read(c, &s->t, &got, 1)->spans[0].count == before, "clear removed frames");
    EXPECT_STATUS(c, KPT_OK, o->release(s->t.self, &got, 1));
}

static void cleared(conform *c)
{
    static scene s;
    s.c = c;
    s.t = gathering_make(c, NULL);
    gathering_in_program(c, visit_and_clear, &s);
}

const conform_rule conform_symbol_rules[] = {
    RULE(R788,
         "each traceback has a span, equal tracebacks have the same one, and each frame has one "
         "symbol",
         spans),
    RULE(R789, "symbolize calls the sink once, also for 0 tracebacks, and returns its status",
         sinks),
    RULE(R790, "get_frames fills the host's array and reports the needed count", numbers),
    RULE(R791, "symbolize_frames returns the same frames as symbolize; unknown numbers are refused",
         by_number),
    RULE(R792, "generated frames follow their Python frame", generated),
    RULE(R793, "traverse and clear keep all frames", cleared),
    {NULL, NULL, NULL},
};
