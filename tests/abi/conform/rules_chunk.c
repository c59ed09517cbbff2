/* rules_chunk.c: R541–R547: chunks of a held recording, delivered to any sink (since 1.1). */
#include "tests/abi/conform/chunk_log.h"
#include "tests/abi/conform/recording.h"

static void small_sink(conform *c)
{
    static const uint32_t sizes[] = {0, sizeof(uint32_t), KPT_CHUNK_SINK_V1_SIZE - 1};
    static chunk_log log;
    kpt_chunk_sink sink = chunk_log_sink(&log, 0);
    kpt_tracer t;
    conform_record(c, &t);
    chunk_log_need(c, &t);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sink.struct_size = sizes[i];
        EXPECT_STATUS(c, KPT_E_SIZE, t.ops->get_chunks(t.self, &sink));
    }
    EXPECT(c, log.calls == 0, "the sink was called despite the error");
}

static void bad_sink(conform *c)
{
    static chunk_log log;
    kpt_chunk_sink sink = chunk_log_sink(&log, 1U << 31);
    kpt_tracer t;
    conform_record(c, &t);
    chunk_log_need(c, &t);
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, t.ops->get_chunks(t.self, &sink));
    sink.flags = 0;
    sink.sealed = NULL;
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_chunks(t.self, &sink));
    EXPECT(c, log.calls == 0, "the sink was called despite the error");
}

static void own_sink(conform *c)
{
    static chunk_log log;
    kpt_chunk_sink sink = chunk_log_sink(&log, 0);
    kpt_tracer_args args;
    kpt_tracer t;
    conform_make(c, &t);
    chunk_log_need(c, &t);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_chunks(t.self, NULL));
    KPT_INIT(&args);
    KPT_INIT(&t);
    args.chunk_sink = &sink;
    if (conform_try_make(c, &args, &t) != KPT_OK) conform_unreached(c, "no tracer was made");
    EXPECT_STATUS(c, KPT_OK, t.ops->get_chunks(t.self, NULL));
}

static int same_chunks(const chunk_log *a, const chunk_log *b)
{
    if (a->count != b->count) return 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const kpt_chunk *x = &a->chunks[i];
        const kpt_chunk *y = &b->chunks[i];
        if (x->thread != y->thread || x->sequence != y->sequence || x->run != y->run ||
            x->size_bytes != y->size_bytes || memcmp(x->data, y->data, x->size_bytes) != 0)
            return 0;
    }
    return 1;
}

static void takes_nothing(conform *c)
{
    kpt_tracer t;
    const recording *before;
    const chunk_log *first;
    conform_record(c, &t);
    before = recording_take(c, &t, KPT_ORDER_THREAD);
    first = chunk_log_take(c, &t, 0);
    EXPECT(c, same_chunks(first, chunk_log_try(c, &t, 0)),
           "the second get_chunks delivered other chunks");
    EXPECT(c, recording_same(before, recording_take(c, &t, KPT_ORDER_TIME)),
           "get_chunks changed the recording");
}

static void refusing_sink(conform *c)
{
    static chunk_log log;
    kpt_tracer t;
    conform_record(c, &t);
    chunk_log_need(c, &t);
    for (uint32_t flags = 0; flags <= KPT_CHUNKS_WHOLE; flags += KPT_CHUNKS_WHOLE) {
        kpt_chunk_sink sink = chunk_log_sink(&log, flags);
        kpt_status status;
        log.answer = 1234;
        status = t.ops->get_chunks(t.self, &sink);
        if (!log.calls) conform_unreached(c, "no chunk was delivered");
        conform_expect_status(c, 1234, status, "get_chunks");
        EXPECT(c, log.calls == 1, "the sink was called again after it had returned an error");
    }
}

static void tables_if_asked(conform *c)
{
    kpt_tracer t;
    const chunk_log *log;
    conform_record(c, &t);
    log = chunk_log_take(c, &t, 0);
    EXPECT(c, log->tables == 0, "%u tables were delivered without a request", log->tables);
}

/* The calls that the tracer's own sink tries, on whatever thread it runs. */
typedef struct trying {
    conform *c;
    kpt_tracer tracer;
    int calls;
} trying;

static kpt_status try_calls(void *ctx, const kpt_chunk *chunk)
{
    static chunk_log log;
    trying *t = ctx;
    const kpt_tracer_ops *ops = t->tracer.ops;
    const kpt_handle self = t->tracer.self;
    const kpt_chunk_sink sink = chunk_log_sink(&log, 0);
    (void)chunk;
    if (!ops) return KPT_OK; /* make has not returned yet */
    t->calls++;
    EXPECT_STATUS(t->c, KPT_E_BUSY, ops->destroy(self));
    EXPECT_STATUS(t->c, KPT_E_BUSY, ops->stop(self));
    EXPECT_STATUS(t->c, KPT_E_BUSY, ops->restart(self));
    EXPECT_STATUS(t->c, KPT_E_BUSY, ops->get_chunks(self, &sink));
    return KPT_OK;
}

/* Chunks are small, so that some are full before the end: then the sink is called on a traced thread. */
static void calls_in_sink(conform *c)
{
    static trying t;
    kpt_chunk_sink sink;
    kpt_tracer_args args;
    kpt_tracer made;
    t.c = c;
    conform_make(c, &made);
    chunk_log_need(c, &made);
    KPT_INIT(&sink);
    sink.sealed = try_calls;
    sink.chunk_ctx = &t;
    sink.chunk_bytes = 1;
    KPT_INIT(&args);
    KPT_INIT(&made);
    args.chunk_sink = &sink;
    if (conform_try_make(c, &args, &made) != KPT_OK) conform_unreached(c, "no tracer was made");
    t.tracer = made;
    conform_workload(c);
    conform_workload(c);
    if (made.ops->stop(made.self) != KPT_OK) conform_unreached(c, "stop failed");
    if (!t.calls) conform_unreached(c, "no chunk was delivered");
    EXPECT_STATUS(c, KPT_OK, made.ops->destroy(made.self));
}

const conform_rule conform_chunk_rules[] = {
    RULE(R541, "get_chunks with a sink below the V1 size is KPT_E_SIZE", small_sink),
    RULE(R542, "get_chunks with an unknown flag or without a function is refused", bad_sink),
    RULE(R543, "get_chunks of NULL is KPT_E_INVALID, unless the tracer has a sink", own_sink),
    RULE(R544, "get_chunks delivers the held chunks and removes none", takes_nothing),
    RULE(R545, "a status other than KPT_OK from the sink ends get_chunks, which returns it",
         refusing_sink),
    RULE(R546, "only a sink of whole chunks receives tables", tables_if_asked),
    RULE(R547, "a call on the tracer from inside its chunk sink is KPT_E_BUSY", calls_in_sink),
    {NULL, NULL, NULL},
};
