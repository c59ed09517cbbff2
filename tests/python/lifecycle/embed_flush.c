/* embed_flush.c: when a flush returns, what was recorded before it is with the sink, even if the thread that
 * recorded it took it there itself, and takes its time: who flushes may be about to end the process.
 * KPT_CYCLES says how many times. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/python/lifecycle/embed.h"

static atomic_ullong taken; /* events */

/* Slow where a thread hands its own. */
static kpt_status take_slowly(void *ctx, const kpt_chunk *chunk)
{
    (void)ctx;
    if (chunk->thread == KPT_CHUNK_TABLE) return KPT_OK;
    if (chunk->os_tid == (uint64_t)syscall(SYS_gettid)) lc_sleep_ms(2);
    atomic_fetch_add(&taken, chunk->size_bytes / sizeof(uint64_t));
    return KPT_OK;
}

void run_flush(void)
{
    kpt_chunk_sink sink = {sizeof sink, KPT_CHUNKS_WHOLE, 1 << 16, take_slowly, NULL};
    const uint32_t cycles = embed_number("KPT_CYCLES", 30);
    lc_tracer *tracer;
    void *state;
    py.initialize(0);
    tracer = lc_make_streaming(&sink, 0);
    CHECK(tracer, "%s", lc_why());
    CHECK(py.run("import threading\n"
                 "ending = False\n"
                 "def tick(): pass\n"
                 "def work():\n"
                 "    while not ending: tick()\n"
                 "worker = threading.Thread(target=work)\n"
                 "worker.start()\n") == 0,
          "the program");
    state = py.save();
    for (uint32_t i = 0; i < cycles; i++) {
        const unsigned long long before = lc_events(tracer);
        CHECK(lc_flush(tracer) == KPT_OK, "flush");
        CHECK(atomic_load(&taken) >= before, "flush %u: %llu events of %llu", i,
              atomic_load(&taken), before);
    }
    py.restore(state);
    CHECK(py.run("ending = True\nworker.join()") == 0, "the end");
    CHECK(lc_stop(tracer) == KPT_OK && lc_destroy(tracer) == KPT_OK, "stop");
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
}
