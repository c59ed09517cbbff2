/* embed_flush.c: when a flush returns, what was recorded before it is with the sink, even if the thread that
 * recorded it took it there itself, and takes its time: who flushes may be about to end the process.
 * A flush that is slower than the thread that records does not follow it. KPT_CYCLES says how many times. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/tick_counter.h"
#include "tests/python/lifecycle/embed.h"

static const char program[] = "import threading\n"
                              "ending = False\n"
                              "def tick(): pass\n"
                              "def work():\n"
                              "    while not ending: tick()\n"
                              "worker = threading.Thread(target=work)\n"
                              "worker.start()\n";

static atomic_ullong taken;    /* events */
static uint64_t flushed_tid;   /* the thread whose chunks the flush takes; 0: none yet */
static uint64_t flushed_ticks; /* when it took the first of them */

/* Slow where a thread hands its own. */
static kpt_status take_slowly(void *ctx, const kpt_chunk *chunk)
{
    (void)ctx;
    if (chunk->thread == KPT_CHUNK_TABLE) return KPT_OK;
    if (chunk->os_tid == (uint64_t)syscall(SYS_gettid)) lc_sleep_ms(2);
    atomic_fetch_add(&taken, chunk->size_bytes / sizeof(uint64_t));
    return KPT_OK;
}

/* Slow where a flush hands chunks, so that the thread that records is faster. */
static kpt_status take_behind(void *ctx, const kpt_chunk *chunk)
{
    (void)ctx;
    if (chunk->thread == KPT_CHUNK_TABLE) return KPT_OK;
    atomic_fetch_add(&taken, chunk->size_bytes / sizeof(uint64_t));
    if (chunk->os_tid == (uint64_t)syscall(SYS_gettid)) return KPT_OK;
    if (chunk->os_tid != flushed_tid) {
        flushed_tid = chunk->os_tid;
        flushed_ticks = kpti_ticks();
        lc_sleep_ms(2);
    }
    CHECK(chunk->first_ticks <= flushed_ticks, "the flush took a chunk that began after it");
    return KPT_OK;
}

/* Flushes again and again while a thread records. */
static void flush_to(const kpt_chunk_sink *sink)
{
    const uint32_t cycles = embed_number("KPT_CYCLES", 30);
    lc_tracer *tracer;
    void *state;
    py.initialize(0);
    tracer = lc_make_streaming(sink, 0);
    CHECK(tracer, "%s", lc_why());
    CHECK(py.run(program) == 0, "the program");
    state = py.save();
    for (uint32_t i = 0; i < cycles; i++) {
        const unsigned long long before = lc_events(tracer);
        flushed_tid = 0;
        CHECK(lc_flush(tracer) == KPT_OK, "flush");
        CHECK(atomic_load(&taken) >= before, "flush %u: %llu events of %llu", i,
              atomic_load(&taken), before);
    }
    flushed_tid = 0;
    py.restore(state);
    CHECK(py.run("ending = True\nworker.join()") == 0, "the end");
    CHECK(lc_stop(tracer) == KPT_OK && lc_destroy(tracer) == KPT_OK, "stop");
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
}

void run_flush(void)
{
    const kpt_chunk_sink sink = {sizeof sink, KPT_CHUNKS_WHOLE, 1 << 16, take_slowly, NULL};
    flush_to(&sink);
}

void run_flush_behind(void)
{
    const kpt_chunk_sink sink = {sizeof sink, KPT_CHUNKS_WHOLE, 1, take_behind, NULL};
    flush_to(&sink);
}
