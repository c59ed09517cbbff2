/* traceback_test.cc: the functions of gatherers for hosts, with an implementation that logs its calls:
 * refused calls never reach it, and other calls reach it with complete structs. */
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/abi/plugin_unit/handles.h"
#include "tests/fixtures/mock_host/mock_host.h"

extern "C" kpt_status kpt_plugin_entry_v1(const kpt_host *host, kpt_plugin_info *out);

namespace
{

/* The implementation: its calls as text, a line each, and its result. */
struct scribe {
    std::string calls;
    kpt_status answer = KPT_OK;
    const char *text = "";
    uint64_t number = 0;
};

scribe *as_scribe(void *self)
{
    return static_cast<scribe *>(self);
}

kpt_status answer_of(scribe *s, kpti_error *error)
{
    return s->text[0] ? kpti_fail(error, s->answer, "%s", s->text) : s->answer;
}

kpti_tracebacks_impl make_row()
{
    kpti_tracebacks_impl row = {};
    row.gather = [](void *self, uint32_t what, uint32_t depth, kpt_traceback *out) {
        as_scribe(self)->calls +=
            "gather " + std::to_string(what) + " " + std::to_string(depth) + "\n";
        EXPECT_EQ(out->flags | out->python | out->script | out->native, 0U) << "it comes empty";
        out->python = 5;
    };
    row.retain = [](void *self, const kpt_traceback *, uint64_t count) {
        as_scribe(self)->calls += "retain " + std::to_string(count) + "\n";
    };
    row.release = [](void *self, kpt_traceback *, uint64_t count) {
        as_scribe(self)->calls += "release " + std::to_string(count) + "\n";
    };
    row.symbolize = [](void *self, const kpt_traceback *, uint64_t count, kpt_symbols_fn, void *,
                       kpti_error *error) {
        as_scribe(self)->calls += "symbolize " + std::to_string(count) + "\n";
        return answer_of(as_scribe(self), error);
    };
    row.get_frames = [](void *self, const kpt_traceback *, uint32_t *, uint64_t capacity) {
        as_scribe(self)->calls += "get_frames " + std::to_string(capacity) + "\n";
        return as_scribe(self)->number;
    };
    row.symbolize_frames = [](void *self, const uint32_t *, uint64_t count, kpt_symbols_fn, void *,
                              kpti_error *error) {
        as_scribe(self)->calls += "symbolize_frames " + std::to_string(count) + "\n";
        return answer_of(as_scribe(self), error);
    };
    row.free_dead = [](void *self, uint64_t max) {
        as_scribe(self)->calls += "free_dead " + std::to_string(max) + "\n";
        return as_scribe(self)->number;
    };
    row.get_stats = [](void *self, kpt_traceback_stats *out) {
        as_scribe(self)->calls += "get_stats\n";
        out->stacks = as_scribe(self)->number;
    };
    return row;
}

const kpti_tracebacks_impl ROW = make_row();

kpt_status no_sink(void *, const kpt_symbols *)
{
    ADD_FAILURE() << "nobody calls it";
    return KPT_OK;
}

int no_visit(void *, void *)
{
    ADD_FAILURE() << "there is nothing to visit";
    return 0;
}

class Facade : public testing::Test
{
  protected:
    void TearDown() override
    {
        EXPECT_EQ(end_handle(handle, kpti_tracebacks_class.kind), KPT_OK);
    }

    scribe pen;
    kpti_object object = {nullptr, &ROW, &pen, 0, 0, {}};
    kpt_handle handle = make_handle(kpti_tracebacks_class.kind, &object, "at first");
    const kpt_tracebacks_ops &ops =
        *static_cast<const kpt_tracebacks_ops *>(kpti_tracebacks_class.ops);
    kpt_traceback one = {9, 9, 9, 9};
};

TEST_F(Facade, HandsOnWhatIsRight)
{
    uint64_t count = 0;
    uint32_t frames[2] = {};
    kpt_traceback_stats stats;
    KPT_INIT(&stats);
    pen.number = 77;
    EXPECT_EQ(ops.gather(handle, 15, 3, &one), KPT_OK);
    EXPECT_EQ(one.python, 5U);
    EXPECT_EQ(ops.retain(handle, &one, 2), KPT_OK);
    EXPECT_EQ(ops.release(handle, nullptr, 0), KPT_OK);
    EXPECT_EQ(ops.symbolize(handle, nullptr, 0, no_sink, nullptr), KPT_OK);
    EXPECT_EQ(ops.symbolize_frames(handle, frames, 2, no_sink, nullptr), KPT_OK);
    EXPECT_EQ(ops.get_frames(handle, &one, frames, 2, &count), KPT_OK);
    EXPECT_EQ(count, 77U);
    EXPECT_EQ(ops.free_dead(handle, 4, nullptr), KPT_OK);
    EXPECT_EQ(ops.free_dead(handle, 0, &(count = 0)), KPT_OK);
    EXPECT_EQ(count, 77U);
    EXPECT_EQ(ops.get_stats(handle, &stats), KPT_OK);
    EXPECT_EQ(stats.stacks, 77U);
    EXPECT_EQ(pen.calls, "gather 15 3\nretain 2\nrelease 0\nsymbolize 0\nsymbolize_frames 2\n"
                         "get_frames 2\nfree_dead 4\nfree_dead 0\nget_stats\n");
    EXPECT_EQ(text_of(handle), "at first") << "nothing has failed";
}

TEST_F(Facade, RefusesTheRestAndSaysWhy)
{
    uint64_t count = 0;
    uint32_t number = 0;
    EXPECT_EQ(ops.symbolize(handle, &one, 1, nullptr, nullptr), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "symbolize: sink is NULL");
    EXPECT_EQ(ops.symbolize(handle, nullptr, 1, no_sink, nullptr), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "symbolize: tracebacks is NULL, but count is not 0");
    EXPECT_EQ(ops.symbolize_frames(handle, &number, 1, nullptr, nullptr), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "symbolize_frames: sink is NULL");
    EXPECT_EQ(ops.symbolize_frames(handle, nullptr, 1, no_sink, nullptr), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "symbolize_frames: frames is NULL, but count is not 0");
    EXPECT_EQ(ops.get_frames(handle, nullptr, &number, 1, &count), KPT_E_INVALID);
    EXPECT_EQ(ops.get_frames(handle, &one, &number, 1, nullptr), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "get_frames: traceback or count is NULL");
    EXPECT_EQ(ops.get_frames(handle, &one, nullptr, 1, &count), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "get_frames: out is NULL, but capacity is not 0");
    EXPECT_EQ(ops.traverse(handle, &one, nullptr, nullptr), KPT_E_INVALID);
    EXPECT_EQ(ops.traverse(handle, nullptr, no_visit, nullptr), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "traverse: traceback or visit is NULL");
    EXPECT_EQ(ops.clear(handle, nullptr), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "clear: traceback is NULL");
    EXPECT_EQ(pen.calls, "");
}

TEST_F(Facade, LeavesNoTextInWhatHasToBeQuick)
{
    EXPECT_EQ(ops.gather(handle, 16, 0, &one), KPT_E_UNSUPPORTED);
    EXPECT_EQ(one.flags | one.python | one.script | one.native, 0U);
    EXPECT_EQ(ops.gather(handle, 1, 0, nullptr), KPT_E_INVALID);
    EXPECT_EQ(ops.retain(handle, nullptr, 1), KPT_E_INVALID);
    EXPECT_EQ(ops.release(handle, nullptr, 1), KPT_E_INVALID);
    EXPECT_EQ(text_of(handle), "at first");
    EXPECT_EQ(pen.calls, "");
}

TEST_F(Facade, KeepsNothingOfPythonsAlive)
{
    const kpt_traceback before = one;
    EXPECT_EQ(ops.traverse(handle, &one, no_visit, nullptr), KPT_OK);
    EXPECT_EQ(ops.clear(handle, &one), KPT_OK);
    EXPECT_EQ(memcmp(&one, &before, sizeof one), 0);
    EXPECT_EQ(pen.calls, "");
}

TEST_F(Facade, TellsWhoseFailureItWas)
{
    pen.answer = KPT_E_MEMORY;
    pen.text = "there is no more";
    EXPECT_EQ(ops.symbolize(handle, &one, 1, no_sink, nullptr), KPT_E_MEMORY);
    EXPECT_EQ(text_of(handle), "there is no more");
    pen.answer = KPT_DECLINED;
    pen.text = ""; /* a status from the sink has no text */
    EXPECT_EQ(ops.symbolize_frames(handle, nullptr, 0, no_sink, nullptr), KPT_DECLINED);
    EXPECT_EQ(text_of(handle), "the sink returned KPT_DECLINED");
}

TEST_F(Facade, IsNoOtherObject)
{
    static const kpti_handle_kind other = {"something else", nullptr};
    const kpt_handle strange = make_handle(&other, &object);
    kpt_traceback_stats stats;
    KPT_INIT(&stats);
    for (kpt_handle wrong : {strange, kpt_handle{0}, handle + (1U << 16)}) {
        EXPECT_EQ(ops.gather(wrong, 1, 0, &one), KPT_E_HANDLE);
        EXPECT_EQ(ops.release(wrong, &one, 1), KPT_E_HANDLE);
        EXPECT_EQ(ops.symbolize(wrong, &one, 1, no_sink, nullptr), KPT_E_HANDLE);
        EXPECT_EQ(ops.get_stats(wrong, &stats), KPT_E_HANDLE);
        EXPECT_EQ(ops.traverse(wrong, &one, no_visit, nullptr), KPT_E_HANDLE);
        EXPECT_EQ(ops.destroy(wrong), KPT_E_HANDLE);
    }
    EXPECT_EQ(pen.calls, "");
    EXPECT_EQ(end_handle(strange, &other), KPT_OK);
}

/* From entry to detach, without Python. */
class Made : public testing::Test
{
  protected:
    void SetUp() override
    {
        kpt_traceback_maker maker;
        kpt_tracebacks_args args;
        mock_host_init(&host, "tracebacks");
        KPT_INIT(&info);
        KPT_INIT(&maker);
        KPT_INIT(&args);
        KPT_INIT(&made);
        ASSERT_EQ(kpt_plugin_entry_v1(&host.table, &info), KPT_OK);
        ASSERT_EQ(info.get_extension(info.self, kpt_str_of(KPT_EXT_TRACEBACK), &maker), KPT_OK);
        EXPECT_EQ(maker.struct_size, sizeof maker);
        ASSERT_EQ(maker.make(info.self, &args, &made), KPT_OK);
    }
    void TearDown() override
    {
        EXPECT_EQ(made.ops->destroy(made.self), KPT_OK);
        EXPECT_EQ(info.detach(info.self), KPT_OK);
        EXPECT_EQ(host.live_blocks, 0U);
        EXPECT_EQ(host.bad_frees, 0U);
    }

    mock_host host;
    kpt_plugin_info info;
    kpt_tracebacks made;
};

TEST_F(Made, IsANoopThatKnowsWhyAndKeepsItsHost)
{
    EXPECT_EQ(made.flags, KPT_OBJECT_NOOP);
    EXPECT_EQ(text_of(made.self), "there is no CPython in this process");
    EXPECT_EQ(info.detach(info.self), KPT_E_STATE);
}

/* A sink holds no exclusive access: it may call any function except destroy. */
TEST_F(Made, CanBeUsedFromItsOwnSink)
{
    const kpt_traceback one = {0, 0, 0, 0};
    const auto sink = [](void *ctx, const kpt_symbols *) {
        const auto *m = static_cast<const kpt_tracebacks *>(ctx);
        kpt_traceback again;
        EXPECT_EQ(m->ops->gather(m->self, KPT_GATHER_PYTHON, 0, &again), KPT_OK);
        EXPECT_EQ(again.flags, KPT_TRACEBACK_NO_PYTHON);
        EXPECT_EQ(m->ops->free_dead(m->self, 0, nullptr), KPT_OK);
        return kpt_status{17};
    };
    EXPECT_EQ(made.ops->symbolize(made.self, &one, 1, sink, &made), 17);
    EXPECT_EQ(text_of(made.self).rfind("the sink returned ", 0), 0U);
}

TEST_F(Made, IsUsedByManyThreadsAtOnce)
{
    constexpr int THREADS = 4, ROUNDS = 500;
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    const auto sink = [](void *, const kpt_symbols *) { return kpt_status{KPT_OK}; };
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&] {
            for (int round = 0; round < ROUNDS; round++) {
                kpt_traceback some[2] = {};
                for (kpt_traceback &each : some)
                    failures += made.ops->gather(made.self, 7, 0, &each) != KPT_OK;
                failures += made.ops->symbolize(made.self, some, 2, sink, nullptr) != KPT_OK;
                failures += made.ops->symbolize(made.self, some, 2, nullptr, nullptr) == KPT_OK;
                failures += made.ops->release(made.self, some, 2) != KPT_OK;
            }
        });
    for (std::thread &each : threads)
        each.join();
    EXPECT_EQ(failures, 0);
}

} // namespace
