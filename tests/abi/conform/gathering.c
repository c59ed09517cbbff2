#include "tests/abi/conform/gathering.h"

_Thread_local uint32_t told_pattern;

void told_name(char name[TOLD_TEXT], uint32_t frame)
{
    (void)snprintf(name, TOLD_TEXT, "%s_%u", told_pattern >> frame & 1 ? "other" : "script", frame);
}

/* The receiver must copy the strings: they are overwritten at once. */
static void tell(void *ctx, kpt_add_frame_fn add, void *add_ctx)
{
    script_host *host = ctx;
    (void)__atomic_fetch_add(&host->calls, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < host->count; i++) {
        char name[TOLD_TEXT];
        char file[] = TOLD_FILE;
        told_name(name, i);
        add(add_ctx, kpt_str_of(name), kpt_str_of(file), TOLD_LINE + i);
        memset(name, '!', sizeof name);
        memset(file, '!', sizeof file);
    }
}

kpt_traceback_maker gathering_maker(conform *c)
{
    kpt_traceback_maker maker;
    if (!c->host.make_tracer) conform_enter(c);
    KPT_INIT(&maker);
    if (c->info.get_extension(c->info.self, kpt_str_of(KPT_EXT_TRACEBACK), &maker) != KPT_OK ||
        !maker.make)
        conform_unreached(c, "the plugin has no tracebacks");
    return maker;
}

static kpt_tracebacks make(conform *c, const kpt_tracebacks_args *args)
{
    const kpt_traceback_maker maker = gathering_maker(c);
    kpt_tracebacks made;
    kpt_status status;
    KPT_INIT(&made);
    status = maker.make(c->info.self, args, &made);
    if (status != KPT_OK || !made.ops || !made.self ||
        made.ops->struct_size < KPT_TRACEBACKS_OPS_V1_SIZE)
        conform_unreached(c, "no traceback gatherer was made: %s", kpt_status_name(status));
    return made;
}

kpt_tracebacks gathering_make(conform *c, script_host *host)
{
    kpt_tracebacks_args args;
    KPT_INIT(&args);
    args.script_frames = host ? tell : NULL;
    args.script_ctx = host;
    return make(c, &args);
}

kpt_tracebacks gathering_make_generating(conform *c, kpt_generated_fn generated, void *ctx)
{
    kpt_tracebacks_args args;
    KPT_INIT(&args);
    args.generated = generated;
    args.generated_ctx = ctx;
    return make(c, &args);
}

kpt_tracebacks gathering_make_real(conform *c, script_host *host)
{
    kpt_tracebacks made = gathering_make(c, host);
    if (made.flags & KPT_OBJECT_NOOP) conform_unreached(c, "it is a no-op");
    return made;
}

kpt_traceback gathering_gather(conform *c, const kpt_tracebacks *t, uint32_t what, uint32_t depth)
{
    kpt_traceback out;
    EXPECT_STATUS(c, KPT_OK, t->ops->gather(t->self, what, depth, &out));
    return out;
}

static const char program[] = "def inner():\n"
                              "    call()\n"
                              "def outer():\n"
                              "    inner()\n"
                              "outer()\n";

void gathering_in_program(conform *c, void (*call)(void *ctx), void *ctx)
{
    conform_in_python(c, program, call, ctx);
}

static void copy_text(char text[SYMBOL_TEXT], kpt_str from)
{
    const size_t size = from.size < SYMBOL_TEXT - 1 ? from.size : SYMBOL_TEXT - 1;
    if (size) memcpy(text, from.data, size);
    text[size] = 0;
}

static const char *look_for_trouble(const kpt_symbols *s)
{
    if (s->struct_size < KPT_SYMBOLS_V1_SIZE) return "struct_size is below the V1 size";
    if (s->symbol_count && s->symbol_stride < KPT_SYMBOL_V1_SIZE)
        return "symbol_stride is below the V1 size";
    if ((s->symbol_count && !s->symbols) || (s->frame_count && !s->frames) ||
        (s->span_count && !s->spans))
        return "an array is NULL, but its count is not 0";
    if (s->symbol_count > MAX_SYMBOLS || s->frame_count > MAX_FRAMES || s->span_count > MAX_SPANS)
        return "a count is implausibly large";
    for (uint64_t i = 0; i < s->frame_count; i++)
        if (s->frames[i] >= s->symbol_count) return "a frame's index is out of range";
    for (uint64_t i = 0; i < s->span_count; i++)
        if (s->spans[i].first > s->frame_count ||
            s->spans[i].count > s->frame_count - s->spans[i].first)
            return "a span is out of range";
    return NULL;
}

kpt_status symbol_log_take(void *ctx, const kpt_symbols *s)
{
    symbol_log *log = ctx;
    if (log->calls++ == 0) log->wrong = look_for_trouble(s);
    if (log->wrong || log->calls > 1) return log->answer;
    log->symbol_count = s->symbol_count;
    log->frame_count = s->frame_count;
    log->span_count = s->span_count;
    for (uint64_t i = 0; i < s->symbol_count; i++) {
        symbol_copy *copy = &log->symbols[i];
        memcpy(&copy->is, (const char *)s->symbols + i * s->symbol_stride, sizeof copy->is);
        copy_text(copy->name, copy->is.name);
        copy_text(copy->qualname, copy->is.qualname);
        copy_text(copy->file, copy->is.file);
    }
    if (s->frame_count) memcpy(log->frames, s->frames, s->frame_count * sizeof *s->frames);
    if (s->span_count) memcpy(log->spans, s->spans, s->span_count * sizeof *s->spans);
    return log->answer;
}

static const symbol_log *check_log(conform *c, const symbol_log *log, kpt_status status,
                                   uint64_t count)
{
    EXPECT(c, status == KPT_OK, "symbolize returned %s", kpt_status_name(status));
    EXPECT(c, log->calls == 1, "the sink was called %u times", log->calls);
    EXPECT(c, !log->wrong, "%s", log->wrong);
    EXPECT(c, log->span_count == count, "there are %u spans for %u tracebacks",
           (unsigned)log->span_count, (unsigned)count);
    return log;
}

static symbol_log *new_log(conform *c)
{
    symbol_log *log = calloc(1, sizeof *log);
    if (!log) conform_unreached(c, "no memory");
    return log;
}

const symbol_log *gathering_read(conform *c, const kpt_tracebacks *t, const kpt_traceback *some,
                                 uint64_t count)
{
    symbol_log *log = new_log(c);
    return check_log(c, log, t->ops->symbolize(t->self, some, count, symbol_log_take, log), count);
}

const symbol_log *gathering_read_numbers(conform *c, const kpt_tracebacks *t,
                                         const uint32_t *numbers, uint64_t count)
{
    symbol_log *log = new_log(c);
    return check_log(
        c, log, t->ops->symbolize_frames(t->self, numbers, count, symbol_log_take, log), count);
}

const symbol_copy *symbol_log_at(const symbol_log *log, uint64_t span, uint64_t i)
{
    if (i >= log->spans[span].count) return NULL;
    return &log->symbols[log->frames[log->spans[span].first + i]];
}

const symbol_copy *symbol_log_of_kind(const symbol_log *log, uint64_t span, uint32_t kind,
                                      uint64_t i)
{
    const symbol_copy *at;
    for (uint64_t k = 0; (at = symbol_log_at(log, span, k)); k++)
        if (at->is.kind == kind && i-- == 0) return at;
    return NULL;
}

uint64_t symbol_log_count(const symbol_log *log, uint64_t span, uint32_t kind)
{
    uint64_t count = 0;
    while (symbol_log_of_kind(log, span, kind, count))
        count++;
    return count;
}

int symbol_log_equal(const symbol_copy *a, const symbol_copy *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->qualname, b->qualname) == 0 &&
           strcmp(a->file, b->file) == 0 && a->is.kind == b->is.kind &&
           a->is.address == b->is.address && a->is.first_line == b->is.first_line &&
           a->is.line == b->is.line && a->is.end_line == b->is.end_line &&
           a->is.column == b->is.column && a->is.end_column == b->is.end_column;
}
