/* failure_test.cc: no disk space or no memory: operators are counted as dropped, the failure is reported,
 * and the tree is consistent. */
#include "tests/native/execution_trace/limit.h"
#include "tests/native/execution_trace/observing.h"

namespace
{

using Failure = Observing;

TEST_F(Failure, WhatFindsNoRoomIsCountedAndTheRestIsWhole)
{
    const uint64_t many = 5000;
    uint64_t recorded = 0;
    {
        const Limit limit(400000);
        begin();
        const uint64_t outer = begin_op(op_of("outer"));
        EXPECT_NE(outer, 0U);
        for (uint64_t i = 0; i < many; i++) {
            const uint64_t a = begin_op(op_of("a"), {values.of(values.tensor(0x1000, {2, 3}))});
            const uint64_t b = begin_op(op_of("b"));
            end_op(b, {values.of(values.tensor(0x2000, {2, 3}))});
            end_op(a, {values.string("an output that is longer than what is kept for an end")},
                   i % 2 ? "and so is the text of an error, in case that there is one" : "");
            recorded += (a != 0) + (b != 0);
        }
        end_op(outer);
        EXPECT_EQ(stop(), KPT_OK);
    }
    EXPECT_LT(recorded, 2 * many);
    EXPECT_GT(recorded, 100U);
    EXPECT_EQ(stats().dropped, 2 * many - recorded);
    EXPECT_EQ(stats().ops, recorded + 1);
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(t["nodes"].items.size(), recorded + 3);
    EXPECT_EQ(t["kpytrace"]["dropped_ops"].text, std::to_string(2 * many - recorded));
    EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
    for (const json &node : t["nodes"].items) /* each one that began has its end */
        EXPECT_FALSE(attr_of(node, "kpytrace").has("ended_by")) << node["id"].text;
}

/* A tensor of an operator that did not fit is not at the position that the chunk would have had it at. */
TEST_F(Failure, WhatFindsNoRoomIsNotKnown)
{
    const std::string text(300, 'x');
    int recorded = 0;
    {
        const Limit limit(400000);
        begin();
        for (int i = 1; i <= 3000; i++) {
            const kpt_tensor &t = values.tensor(0x1000, {i, 3});
            end_op(begin_op(op_of("long"), {values.of(t), values.string(text.c_str())}));
            const uint64_t id = begin_op(op_of("short"), {values.integer(i), values.of(t)});
            recorded += id != 0;
            end_op(id);
        }
        EXPECT_EQ(stop(), KPT_OK);
    }
    const json t = finish();
    EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
    for (const json &node : t["nodes"].items) {
        if (node["name"].text != "short") continue;
        const std::string number = text_of(node["inputs"]["values"].items[0]);
        EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[],[" + number + ",3]]");
        recorded--;
    }
    EXPECT_EQ(recorded, 0);
}

TEST_F(Failure, NoRoomAtAll)
{
    make();
    {
        const Limit limit(1000);
        EXPECT_EQ(open("t.json"), KPT_E_IO);
    }
    EXPECT_EQ(files(), 0U);
    {
        const Limit limit(65536); /* for the head of the journal, and nothing more */
        ASSERT_EQ(open("t.json"), KPT_OK) << error;
        EXPECT_EQ(start(), KPT_E_IO);
        EXPECT_NE(error, "");
    }
    EXPECT_EQ(start(), KPT_OK);
    run("op");
    expect_tree(finish());
}

TEST_F(Failure, AFileThatCantBeWrittenLeavesTheJournal)
{
    begin();
    for (int i = 0; i < 3000; i++)
        run("op");
    EXPECT_EQ(stop(), KPT_OK);
    {
        const Limit limit(100000);
        EXPECT_EQ(close(), KPT_E_IO);
        EXPECT_NE(error.find("t.json"), std::string::npos);
    }
    EXPECT_TRUE(exists("t.json.journal"));
    EXPECT_EQ(read()["kpytrace"]["complete"].text, "false");
    kpti_error text = {""};
    ASSERT_EQ(kpti_execution_trace.recover(self, path("t.json.journal").c_str(),
                                           path("t.json").c_str(), &text),
              KPT_OK)
        << text.text;
    expect_tree(read());
    EXPECT_EQ(read()["nodes"].items.size(), 3002U);
    EXPECT_EQ(read()["kpytrace"]["complete"].text, "true");
}

/* The host's allocator, which fails at call number fails_at. It fails for all calls of the observer's own
 * threads, so these do nothing (live_writer_test.cc tests their failures). */
thread_local bool is_caller = false;
struct Allocator {
    uint64_t fails_at;
    uint64_t calls;
    int64_t bytes;
};

void *allocate_until(void *ctx, uint64_t size)
{
    Allocator *a = static_cast<Allocator *>(ctx);
    if (!is_caller || ++a->calls == a->fails_at) return nullptr;
    a->bytes += static_cast<int64_t>(size);
    return malloc(size);
}

void deallocate_counted(void *ctx, void *memory, uint64_t size)
{
    static_cast<Allocator *>(ctx)->bytes -= static_cast<int64_t>(size);
    free(memory);
}

/* Allocation 1, 2, 3 … fails, until no allocation is left to fail. */
TEST_F(Failure, EveryAllocationMayFail)
{
    Allocator allocator = {0, 0, 0};
    uint64_t at = 0;
    bool is_whole = false;
    is_caller = true;
    env.host.ctx = &allocator;
    env.host.alloc = allocate_until;
    env.host.dealloc = deallocate_counted;
    args.flags = KPT_OBSERVER_STACKS;
    args.data_ops = kpt_str_of("none");
    gather_stack(3);
    while (allocator.calls >= at && ++at < 500) {
        kpti_error text = {""};
        kpt_status status;
        allocator.calls = 0;
        allocator.fails_at = at;
        status = kpti_execution_trace.make(&env, &args, &self, &text);
        if (status == KPT_OK) {
            status = open("t.json");
            if (status == KPT_OK) {
                EXPECT_EQ(start(), KPT_OK);
                const uint64_t outer = begin_op(op_of("outer"));
                run("op", {values.of(values.tensor(0x1000, {2})), values.real(0.5)});
                end_op(outer);
                EXPECT_EQ(stop(), KPT_OK);
                status = close();
            }
            EXPECT_EQ(status == KPT_OK, error.empty());
            kpti_execution_trace.destroy(self);
        }
        self = nullptr;
        is_whole = status == KPT_OK;
        EXPECT_TRUE(is_whole || status == KPT_E_MEMORY || status == KPT_E_IO) << status;
        EXPECT_EQ(allocator.bytes, 0) << at;
    }
    EXPECT_GT(at, 20U);
    EXPECT_LT(at, 500U);
    EXPECT_TRUE(is_whole);
    expect_tree(read());
}

TEST_F(Failure, AThreadThatNeverFoundRoomMayHaveEmptyTexts)
{
    {
        const Limit limit(2 * 65536); /* the head, and the stream of starts */
        begin();
        EXPECT_EQ(begin_op(op_of("op"), {values.string("")}), 0U);
        EXPECT_EQ(stats().dropped, 1U);
    }
    expect_tree(finish());
}

/* The journal is mapped in large mappings if possible; otherwise only the written part is mapped. */
TEST_F(Failure, WhereAddressesAreShortNothingIsLost)
{
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer's own allocations fail here, and then it hangs now and then";
#endif
    const std::string text(4000, 'x');
    {
        const Limit limit(addresses() + (48 << 20), RLIMIT_AS);
        begin();
        for (int i = 0; i < 30000; i++)
            run("op", {values.string(text.c_str())});
        EXPECT_EQ(stop(), KPT_OK);
    }
    EXPECT_EQ(stats().dropped, 0U);
    EXPECT_GT(stats().journal_bytes, 100U << 20);
    EXPECT_EQ(close(), KPT_OK) << error;
    const std::string trace = content("t.json");
    EXPECT_NE(trace.find("\"complete\":true"), std::string::npos);
    EXPECT_NE(trace.find("\"damaged\":0,"), std::string::npos);
    size_t ops = 0;
    for (size_t at = 0; (at = trace.find("\"name\":\"op\"", at)) != std::string::npos; at++)
        ops++;
    EXPECT_EQ(ops, 30000U);
}

} // namespace
