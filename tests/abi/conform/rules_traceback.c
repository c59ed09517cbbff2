/* rules_traceback.c: R780–R787: combined tracebacks, an extension (since 1.1): how they are made, what
 * gather finds, and how long a traceback lives. */
#include "tests/abi/conform/gathering.h"

enum { EVERYTHING = KPT_GATHER_PYTHON | KPT_GATHER_SCRIPT | KPT_GATHER_NATIVE };

static const kpt_traceback empty;

static int is_empty(const kpt_traceback *traceback)
{
    return memcmp(traceback, &empty, sizeof empty) == 0;
}

static void bad_make(conform *c)
{
    const kpt_traceback_maker maker = gathering_maker(c);
    enum { NEWER = 64 };
    kpt_tracebacks_args args;
    kpt_tracebacks out;
    KPT_INIT(&args);
    KPT_INIT(&out);
    EXPECT_STATUS(c, KPT_E_INVALID, maker.make(c->info.self, NULL, &out));
    EXPECT_STATUS(c, KPT_E_INVALID, maker.make(c->info.self, &args, NULL));
    EXPECT_STATUS(c, KPT_E_HANDLE, maker.make(0, &args, &out));
    out.struct_size = KPT_TRACEBACKS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, maker.make(c->info.self, &args, &out));
    KPT_INIT(&out);
    args.struct_size = KPT_TRACEBACKS_ARGS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, maker.make(c->info.self, &args, &out));
    KPT_INIT(&args);
    args.flags = 1U << 31;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, maker.make(c->info.self, &args, &out));
    EXPECT(c, !out.ops && !out.self, "out has a handle after a failure");
    KPT_INIT(&args);
    EXPECT_STATUS(
        c, KPT_OK,
        maker.make(c->info.self,
                   conform_sized(&args, sizeof args, sizeof args + NEWER, sizeof args + NEWER),
                   &out));
}

static int visit(void *object, void *ctx)
{
    (void)object;
    (void)ctx;
    return 0;
}

static void dead(conform *c)
{
    static symbol_log log;
    const kpt_tracebacks t = gathering_make(c, NULL);
    kpt_traceback one = empty;
    kpt_traceback_stats stats;
    uint32_t number = 0;
    uint64_t count;
    const kpt_tracebacks_ops *o = t.ops;
    EXPECT(c,
           o->gather && o->retain && o->release && o->symbolize && o->get_frames &&
               o->symbolize_frames && o->traverse && o->clear && o->free_dead && o->get_stats &&
               o->last_error && o->destroy,
           "a function is missing");
    EXPECT_STATUS(c, KPT_OK, o->destroy(t.self));
    KPT_INIT(&stats);
    EXPECT_STATUS(c, KPT_E_HANDLE, o->gather(t.self, 0, 0, &one));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->retain(t.self, &one, 1));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->release(t.self, &one, 1));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->symbolize(t.self, &one, 1, symbol_log_take, &log));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->get_frames(t.self, &one, &number, 1, &count));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->symbolize_frames(t.self, &number, 1, symbol_log_take, &log));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->traverse(t.self, &one, visit, NULL));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->clear(t.self, &one));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->free_dead(t.self, 0, &count));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->get_stats(t.self, &stats));
    EXPECT_STATUS(c, KPT_E_HANDLE, o->destroy(t.self));
    EXPECT(c, log.calls == 0, "the sink was called");
}

static void bad_gather(conform *c)
{
    const kpt_tracebacks t = gathering_make(c, NULL);
    const kpt_tracebacks other = gathering_make(c, NULL);
    kpt_traceback out;
    for (uint32_t bit = 1U << 4; bit; bit <<= 1) {
        memset(&out, 0xA5, sizeof out);
        EXPECT_STATUS(c, KPT_E_UNSUPPORTED,
                      t.ops->gather(t.self, bit | KPT_GATHER_PYTHON, 0, &out));
        EXPECT(c, is_empty(&out), "out is not empty after an unknown bit");
    }
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->gather(t.self, EVERYTHING, 0, NULL));
    if (other.ops->destroy(other.self) != KPT_OK) conform_unreached(c, "destroy failed");
    memset(&out, 0xA5, sizeof out);
    EXPECT_STATUS(c, KPT_E_HANDLE, other.ops->gather(other.self, EVERYTHING, 0, &out));
    EXPECT(c, is_empty(&out), "out is not empty after KPT_E_HANDLE");
}

/* The arguments of most rules, on the way into the program. */
typedef struct scene {
    conform *c;
    kpt_tracebacks t;
    script_host host;
} scene;

static void gather_nothing(void *ctx)
{
    scene *s = ctx;
    const uint32_t nothing[] = {0, KPT_GATHER_WAIT};
    for (int i = 0; i < 2; i++) {
        const kpt_traceback got = gathering_gather(s->c, &s->t, nothing[i], 0);
        const symbol_log *log = gathering_read(s->c, &s->t, &got, 1);
        EXPECT(s->c, is_empty(&got), "the traceback is not empty");
        EXPECT(s->c, log->spans[0].count == 0, "the traceback has %u frames",
               (unsigned)log->spans[0].count);
    }
    EXPECT(s->c, s->host.calls == 0, "the host was asked for its script frames");
}

static void nothing(conform *c)
{
    static scene s = {.host = {.count = 2}};
    s.c = c;
    s.t = gathering_make(c, &s.host);
    gathering_in_program(c, gather_nothing, &s);
}

static void expect_frame(conform *c, const symbol_copy *frame, const char *name, uint32_t first,
                         uint32_t line)
{
    EXPECT(c, frame && strcmp(frame->name, name) == 0, "expected the frame %s, found %s", name,
           frame ? frame->name : "nothing");
    EXPECT(c, strcmp(frame->qualname, name) == 0, "%s has the qualname %s", name, frame->qualname);
    EXPECT(c, frame->is.first_line == first && frame->is.line == line,
           "%s has the line %u and the first line %u", name, frame->is.line, frame->is.first_line);
    EXPECT(c, frame->file[0], "%s has no file", name);
}

static void gather_everything(void *ctx)
{
    scene *s = ctx;
    conform *c = s->c;
    const kpt_traceback got = gathering_gather(c, &s->t, EVERYTHING, 0);
    const symbol_log *log = gathering_read(c, &s->t, &got, 1);
    const uint64_t python = symbol_log_count(log, 0, KPT_SYMBOL_PYTHON);
    const uint64_t script = symbol_log_count(log, 0, KPT_SYMBOL_SCRIPT);
    const uint64_t native = symbol_log_count(log, 0, KPT_SYMBOL_NATIVE);
    if (got.flags & KPT_TRACEBACK_NO_PYTHON && !c->libpython)
        conform_unreached(c, "the plugin finds no Python");
    EXPECT(c, !(got.flags & KPT_TRACEBACK_NO_PYTHON), "no Python frames, though the GIL is held");
    expect_frame(c, symbol_log_of_kind(log, 0, KPT_SYMBOL_PYTHON, 0), "inner", 1, INNER_LINE);
    expect_frame(c, symbol_log_of_kind(log, 0, KPT_SYMBOL_PYTHON, 1), "outer", 3, OUTER_LINE);
    EXPECT(c, script == s->host.count, "expected %u script frames, found %u", s->host.count,
           (unsigned)script);
    EXPECT(c, native > 0, "there are no native frames");
    for (uint64_t i = 0; i < native; i++)
        EXPECT(c, symbol_log_of_kind(log, 0, KPT_SYMBOL_NATIVE, i)->is.address,
               "a native frame has no address");
    EXPECT(c, python + script + native == log->spans[0].count, "a frame has an unexpected kind");
}

static void everything(conform *c)
{
    static scene s = {.host = {.count = 2}};
    s.c = c;
    s.t = gathering_make_real(c, &s.host);
    gathering_in_program(c, gather_everything, &s);
}

static void expect_told(conform *c, const symbol_log *log, uint64_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const symbol_copy *frame = symbol_log_at(log, 0, i);
        char name[TOLD_TEXT];
        told_name(name, i);
        EXPECT(c, frame && strcmp(frame->name, name) == 0, "expected the frame %s, found %s", name,
               frame ? frame->name : "nothing");
        EXPECT(c, strcmp(frame->qualname, name) == 0 && strcmp(frame->file, TOLD_FILE) == 0,
               "%s has the qualname %s and the file %s", name, frame->qualname, frame->file);
        EXPECT(c, frame->is.line == TOLD_LINE + i && frame->is.kind == KPT_SYMBOL_SCRIPT,
               "%s has a wrong line or kind", name);
    }
    EXPECT(c, log->spans[0].count == count, "there are %u frames, not %u",
           (unsigned)log->spans[0].count, (unsigned)count);
}

static void script(conform *c)
{
    script_host host = {.count = 3};
    const kpt_tracebacks t = gathering_make_real(c, &host);
    const kpt_tracebacks mute = gathering_make_real(c, NULL);
    kpt_traceback got = gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
    EXPECT(c, host.calls == 1, "the host was asked %u times", host.calls);
    expect_told(c, gathering_read(c, &t, &got, 1), host.count);
    EXPECT(c, host.calls == 1, "the host was asked again, to symbolize");
    (void)gathering_gather(c, &t, KPT_GATHER_PYTHON | KPT_GATHER_NATIVE, 0);
    EXPECT(c, host.calls == 1, "the host was asked for script frames without a request");
    got = gathering_gather(c, &mute, KPT_GATHER_SCRIPT, 0);
    EXPECT(c, is_empty(&got), "there are script frames, but the host has none");
}

static void expect_depth(conform *c, const kpt_tracebacks *t, uint32_t depth, uint32_t there)
{
    const kpt_traceback got = gathering_gather(c, t, KPT_GATHER_SCRIPT, depth);
    const symbol_log *log = gathering_read(c, t, &got, 1);
    const uint32_t wanted = depth && depth < there ? depth : there;
    const int is_cut = (got.flags & KPT_TRACEBACK_CUT) != 0;
    EXPECT(c, log->spans[0].count == wanted, "a depth of %u returns %u of %u frames", depth,
           (unsigned)log->spans[0].count, there);
    EXPECT(c, is_cut == (wanted < there), "a depth of %u of %u: the traceback %s", depth, there,
           is_cut ? "is marked as cut" : "is not marked as cut");
}

static void gather_depths(void *ctx)
{
    const scene *s = ctx;
    conform *c = s->c;
    uint32_t all[MAX_FRAMES];
    uint32_t one[1] = {0};
    uint64_t count;
    kpt_traceback got = gathering_gather(c, &s->t, KPT_GATHER_PYTHON, 0);
    EXPECT_STATUS(c, KPT_OK, s->t.ops->get_frames(s->t.self, &got, all, MAX_FRAMES, &count));
    if (count < 2 || count > MAX_FRAMES)
        conform_unreached(c, "there are no Python frames to gather");
    EXPECT(c, !(got.flags & KPT_TRACEBACK_CUT), "a traceback of unlimited depth is marked as cut");
    got = gathering_gather(c, &s->t, KPT_GATHER_PYTHON, (uint32_t)count);
    EXPECT(c, !(got.flags & KPT_TRACEBACK_CUT), "a traceback with all frames is marked as cut");
    got = gathering_gather(c, &s->t, KPT_GATHER_PYTHON, 1);
    EXPECT(c, got.flags & KPT_TRACEBACK_CUT, "a traceback with 1 of %u frames is not marked as cut",
           (unsigned)count);
    EXPECT_STATUS(c, KPT_OK, s->t.ops->get_frames(s->t.self, &got, one, 1, &count));
    EXPECT(c, count == 1, "a depth of 1 returns %u Python frames", (unsigned)count);
    /* The lines in inner() of the two gathers differ; the name is the same. */
    EXPECT(c,
           strcmp(symbol_log_at(gathering_read_numbers(c, &s->t, one, 1), 0, 0)->name,
                  symbol_log_at(gathering_read_numbers(c, &s->t, all, 1), 0, 0)->name) == 0,
           "the frame is not the innermost one");
}

static void depths(conform *c)
{
    static scene s = {.host = {.count = 3}};
    s.c = c;
    s.t = gathering_make_real(c, &s.host);
    for (uint32_t depth = 0; depth < 6; depth++)
        expect_depth(c, &s.t, depth, s.host.count);
    gathering_in_program(c, gather_depths, &s);
}

static void counted(conform *c)
{
    enum { OTHERS = 8 };
    script_host host = {.count = 3};
    const kpt_tracebacks t = gathering_make(c, &host);
    kpt_traceback first = gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
    kpt_traceback copy = first;
    const symbol_log *before = gathering_read(c, &t, &first, 1);
    const symbol_log *after;
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->retain(t.self, NULL, 1));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->release(t.self, NULL, 1));
    EXPECT_STATUS(c, KPT_OK, t.ops->retain(t.self, NULL, 0));
    EXPECT_STATUS(c, KPT_OK, t.ops->release(t.self, NULL, 0));
    EXPECT_STATUS(c, KPT_OK, t.ops->retain(t.self, &copy, 1));
    EXPECT_STATUS(c, KPT_OK, t.ops->release(t.self, &first, 1));
    EXPECT(c, is_empty(&first), "a released traceback is not empty");
    EXPECT_STATUS(c, KPT_OK, t.ops->release(t.self, &first, 1)); /* an empty one, now */
    EXPECT_STATUS(c, KPT_OK, t.ops->free_dead(t.self, 0, NULL));
    for (told_pattern = 1; told_pattern < OTHERS; told_pattern++) /* these reuse the freed stacks */
        (void)gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
    after = gathering_read(c, &t, &copy, 1);
    EXPECT(c, after->spans[0].count == before->spans[0].count, "the copy has %u frames of %u",
           (unsigned)after->spans[0].count, (unsigned)before->spans[0].count);
    for (uint64_t i = 0; i < after->spans[0].count; i++)
        EXPECT(c, symbol_log_equal(symbol_log_at(before, 0, i), symbol_log_at(after, 0, i)),
               "frame %u of the copy differs", (unsigned)i);
    EXPECT_STATUS(c, KPT_OK, t.ops->release(t.self, &copy, 1));
    EXPECT(c, is_empty(&copy), "a released traceback is not empty");
}

const conform_rule conform_traceback_rules[] = {
    RULE(R780, "the traceback maker refuses arguments that are NULL, too small or unknown",
         bad_make),
    RULE(R781, "a traceback gatherer has all functions, and each is KPT_E_HANDLE after destroy",
         dead),
    RULE(R782, "gather refuses unknown bits; after a failure out is empty", bad_gather),
    RULE(R783, "a traceback of no kind of frame is empty", nothing),
    RULE(R784, "Python, script and native frames are merged, Python frames innermost first",
         everything),
    RULE(R785, "script frames are copied on request, innermost first", script),
    RULE(R786, "gather returns at most the requested depth, and marks a cut traceback", depths),
    RULE(R787, "a retained copy is valid until its own release, which empties it", counted),
    {NULL, NULL, NULL},
};
