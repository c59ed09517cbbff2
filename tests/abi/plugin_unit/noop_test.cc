/* noop_test.cc: the implementations that do nothing: every call is legal, returns at once, keeps no memory
 * and creates no file. */
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/abi/plugin_unit/private.h"
#include "tests/fixtures/mock_host/mock_host.h"

namespace
{

/* An empty folder as the working directory, which must be empty in the end as well. */
class Noop : public testing::Test
{
  protected:
    void SetUp() override
    {
        folder = testing::TempDir() + "kpt_noop_XXXXXX";
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
        ASSERT_NE(getcwd(before, sizeof before), nullptr);
        ASSERT_EQ(chdir(folder.c_str()), 0);
        mock_host_init(&host, "noop");
        env.host = host.table;
        error.text[0] = 0;
    }
    void TearDown() override
    {
        EXPECT_EQ(entries(), "");
        EXPECT_EQ(host.alloc_calls, allocations);
        EXPECT_EQ(host.live_blocks, 0U);
        EXPECT_EQ(host.call_count, 0U) << host.calls[0];
        EXPECT_STREQ(error.text, "");
        EXPECT_EQ(chdir(before), 0);
        EXPECT_EQ(rmdir(folder.c_str()), 0);
    }
    std::string entries() const
    {
        std::string names;
        DIR *dir = opendir(folder.c_str());
        while (const dirent *entry = readdir(dir))
            if (std::string(entry->d_name).find_first_not_of('.') != std::string::npos)
                names += std::string(entry->d_name) + " ";
        closedir(dir);
        return names;
    }
    std::string path(const char *name) const
    {
        return folder + "/" + name;
    }

    std::string folder;
    char before[PATH_MAX] = "";
    mock_host host;
    uint64_t allocations = 0; /* that the test expects */
    kpti_env env;
    kpti_error error;
    void *self = &self; /* not NULL, to detect that it is set */
};

kpt_status never(void *, const kpt_batch *)
{
    ADD_FAILURE() << "a no-op delivers nothing";
    return KPT_OK;
}

TEST_F(Noop, TracerAnswersEveryCall)
{
    const kpti_tracer_impl &t = kpti_noop_tracer;
    kpt_tracer_args args;
    kpt_delivery delivery;
    kpt_stats stats, untouched;
    KPT_INIT(&args);
    KPT_INIT(&delivery);
    KPT_INIT(&stats);
    delivery.sink = never;
    untouched = stats;
    ASSERT_EQ(t.make(&env, &args, &self, &error), KPT_OK);
    EXPECT_EQ(self, nullptr);
    for (int round = 0; round < 3; round++) {
        EXPECT_EQ(t.register_gc_callback(self, &error), KPT_OK);
        for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
            delivery.order = order;
            EXPECT_EQ(t.deliver(self, &delivery, &error), KPT_OK);
        }
        EXPECT_EQ(t.stop(self, &error), KPT_OK);
        EXPECT_EQ(t.deliver(self, &delivery, &error), KPT_OK);
        EXPECT_EQ(t.restart(self, &error), KPT_OK);
        t.get_stats(self, &stats);
        EXPECT_EQ(memcmp(&stats, &untouched, sizeof stats), 0);
    }
    t.forked(self);
    t.destroy(self);
}

TEST_F(Noop, MemoryTracerExportsNoFile)
{
    const kpti_memory_impl &m = kpti_noop_memory;
    kpt_memory_args args;
    kpt_memory_report report;
    KPT_INIT(&args);
    ASSERT_EQ(m.make(&env, &args, &self, &error), KPT_OK);
    EXPECT_EQ(self, nullptr);
    EXPECT_EQ(m.export_memory_history(self, path("before.pickle").c_str(), &error), KPT_OK);
    EXPECT_EQ(m.start(self, &error), KPT_OK);
    EXPECT_EQ(m.export_memory_history(self, "relative.pickle", &error), KPT_OK);
    EXPECT_EQ(m.export_memory_history(self, "/no/such/folder/x.json", &error), KPT_OK);
    KPT_INIT(&report);
    m.report(self, &report);
    EXPECT_EQ(m.stop(self, &error), KPT_OK);
    EXPECT_EQ(m.export_memory_history(self, path("after.html").c_str(), &error), KPT_OK);
    m.forked(self);
    m.destroy(self);
}

TEST_F(Noop, ObserverOpensNoFileAndNumbersNoOperator)
{
    const kpti_observer_impl &o = kpti_noop_observer;
    kpt_observer_args args;
    kpt_observer_stats stats = {};
    kpti_error refusal = {""};
    uint64_t id = 0;
    kpt_op op;
    KPT_INIT(&args);
    KPT_INIT(&op);
    ASSERT_EQ(o.make(&env, &args, &self, &error), KPT_OK);
    EXPECT_EQ(self, nullptr);
    for (int round = 0; round < 2; round++) {
        EXPECT_EQ(o.begin_op(self, &op, &id), KPT_OK);
        EXPECT_EQ(id, 0U);
        EXPECT_EQ(o.open(self, path("trace.json").c_str(), &error), KPT_OK);
        EXPECT_EQ(o.start(self, &error), KPT_OK);
        EXPECT_EQ(o.begin_op(self, &op, &id), KPT_OK);
        EXPECT_EQ(id, 0U);
        EXPECT_EQ(o.end_op(self, 0, &op, kpt_str_of("")), KPT_OK);
        EXPECT_EQ(o.end_op(self, 17, &op, kpt_str_of("it raised")), KPT_OK);
        EXPECT_EQ(o.stop(self, &error), KPT_OK);
        EXPECT_EQ(o.close(self, &error), KPT_OK);
        o.get_stats(self, &stats);
        EXPECT_EQ(stats.ops + stats.dropped + stats.journal_bytes, 0U);
        EXPECT_EQ(o.recover(self, "journal", path("trace.json").c_str(), &refusal),
                  KPT_E_UNSUPPORTED);
    }
    o.forked(self);
    o.destroy(self);
}

/* The calls of a sink, and its spans, which must all be empty. */
struct symbols_seen {
    kpt_status answer = KPT_OK;
    int calls = 0;
    uint64_t spans = 0;
};

kpt_status take_symbols(void *ctx, const kpt_symbols *symbols)
{
    auto *seen = static_cast<symbols_seen *>(ctx);
    EXPECT_EQ(symbols->struct_size, sizeof *symbols);
    EXPECT_EQ(symbols->symbol_stride, sizeof(kpt_symbol));
    EXPECT_EQ(symbols->symbol_count, 0U);
    EXPECT_EQ(symbols->frame_count, 0U);
    for (uint64_t i = 0; i < symbols->span_count; i++)
        EXPECT_EQ(symbols->spans[i].count, 0U);
    seen->calls++;
    seen->spans += symbols->span_count;
    return seen->answer;
}

TEST_F(Noop, TracebacksAreEmpty)
{
    const kpti_tracebacks_impl &t = kpti_noop_tracebacks;
    const uint32_t all = KPT_GATHER_PYTHON | KPT_GATHER_SCRIPT | KPT_GATHER_NATIVE;
    const kpt_traceback zeros = {0, 0, 0, 0};
    kpt_tracebacks_args args;
    kpt_traceback_stats stats, untouched;
    kpt_traceback some[3];
    symbols_seen seen;
    uint32_t number = 7;
    KPT_INIT(&args);
    KPT_INIT(&stats);
    untouched = stats;
    ASSERT_EQ(t.make(&env, &args, &self, &error), KPT_OK);
    memset(some, 0xA5, sizeof some);
    t.gather(self, all & ~static_cast<uint32_t>(KPT_GATHER_PYTHON), 0, &some[0]);
    EXPECT_EQ(memcmp(&some[0], &zeros, sizeof zeros), 0);
    t.gather(self, all, 0, &some[1]);
    EXPECT_EQ(some[1].flags, KPT_TRACEBACK_NO_PYTHON);
    t.gather(self, 0, 5, &some[2]);
    t.retain(self, some, 3);
    EXPECT_EQ(t.symbolize(self, some, 3, take_symbols, &seen, &error), KPT_OK);
    EXPECT_EQ(t.symbolize(self, nullptr, 0, take_symbols, &seen, &error), KPT_OK);
    EXPECT_EQ(t.symbolize_frames(self, nullptr, 0, take_symbols, &seen, &error), KPT_OK);
    EXPECT_EQ(seen.calls, 3);
    EXPECT_EQ(seen.spans, 3U);
    EXPECT_EQ(t.get_frames(self, &some[1], &number, 1), 0U);
    EXPECT_EQ(number, 7U);
    t.release(self, some, 3);
    EXPECT_EQ(memcmp(&some[1], &zeros, sizeof zeros), 0);
    EXPECT_EQ(t.free_dead(self, 0), 0U);
    t.get_stats(self, &stats);
    EXPECT_EQ(memcmp(&stats, &untouched, sizeof stats), 0);
    seen.answer = 1234;
    EXPECT_EQ(t.symbolize(self, some, 1, take_symbols, &seen, &error), 1234);
    allocations = 2;
    t.destroy(self);
}

TEST_F(Noop, TracebacksRefuseWhatCantBe)
{
    const kpti_tracebacks_impl &t = kpti_noop_tracebacks;
    kpt_tracebacks_args args;
    symbols_seen seen;
    kpt_traceback one = {0, 0, 0, 0};
    const uint32_t number = 7;
    kpti_error refused = {""};
    KPT_INIT(&args);
    ASSERT_EQ(t.make(&env, &args, &self, &error), KPT_OK);
    EXPECT_EQ(t.symbolize_frames(self, &number, 1, take_symbols, &seen, &refused), KPT_E_INVALID);
    EXPECT_STREQ(refused.text, "symbolize_frames: get_frames never returned the number 7");
    EXPECT_EQ(t.symbolize(self, &one, UINT64_MAX / 2, take_symbols, &seen, &refused), KPT_E_MEMORY);
    host.fail_alloc_at = allocations = 1;
    EXPECT_EQ(t.symbolize(self, &one, 1, take_symbols, &seen, &refused), KPT_E_MEMORY);
    EXPECT_EQ(seen.calls, 0);
    t.destroy(self);
}

} // namespace
