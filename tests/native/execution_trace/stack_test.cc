/* stack_test.cc: Python's stacks: written once, and referred to by index. */
#include <thread>

#include "tests/native/execution_trace/observing.h"

namespace
{

using Stack = Observing;

TEST_F(Stack, EachIsThereOnce)
{
    args.flags = KPT_OBSERVER_STACKS;
    gather_stack(3);
    begin();
    EXPECT_EQ(stacks_begun(), 1);
    run("deep");
    gather_stack(2);
    run("less");
    gather_stack(0);
    run("none");
    gather_stack(3);
    run("again");
    const json t = finish();
    const json &ours = t["kpytrace"];
    EXPECT_EQ(text_of(ours["frames"]),
              "[[\"forward \"x\"\",\"train.py\",30],[\"step\",\"train.py\",20],"
              "[\"main\",\"train.py\",10]]");
    EXPECT_EQ(text_of(ours["stacks"]), "[[1,0],[2,1],[-1,2]]");
    EXPECT_EQ(extra_of(node_of(t, "deep"), "stack").text, "0");
    EXPECT_EQ(extra_of(node_of(t, "less"), "stack").text, "1");
    EXPECT_EQ(extra_of(node_of(t, "none"), "stack").is, json::NOTHING);
    EXPECT_EQ(extra_of(node_of(t, "again"), "stack").text, "0");
    kpti_execution_trace.destroy(self);
    self = nullptr;
    EXPECT_EQ(stacks_begun(), 0);
}

TEST_F(Stack, AreAskedForOnlyIfTheyAreWanted)
{
    gather_stack(3);
    begin();
    run("op");
    const json t = finish();
    EXPECT_EQ(extra_of(node_of(t, "op"), "stack").is, json::NOTHING);
    EXPECT_EQ(text_of(t["kpytrace"]["stacks"]), "[]");
}

TEST_F(Stack, TheirDepthIsTheArgs)
{
    args.flags = KPT_OBSERVER_STACKS;
    args.stack_depth = 1;
    gather_stack(3);
    begin();
    run("op");
    EXPECT_EQ(finish()["kpytrace"]["stacks"].items.size(), 1U);
}

class OpenCalls : public Observing
{
  protected:
    uint64_t begin_one(uint32_t flags, uint32_t scope = 0, const char *schema = "")
    {
        kpt_op op = op_of("op");
        op.flags = flags;
        op.scope = scope;
        op.schema = kpt_str_of(schema);
        return begin_op(op);
    }

    /* Returns whether an operator that begins now receives the token of an open call. */
    bool is_inside()
    {
        end_op(begin_one(0));
        return stack_was_known();
    }

    void SetUp() override
    {
        args.flags = KPT_OBSERVER_STACKS;
        gather_stack(3);
        begin();
    }
};

/* Issue 23: the observer concludes nothing from an operator's other fields. */
TEST_F(OpenCalls, AreThoseOfWhichTheHostPromisesIt)
{
    for (const uint32_t scope : {0U, 1U, 7U})
        for (const char *schema : {"op(Tensor a) -> Tensor", ""})
            for (const uint32_t flags : {0U, uint32_t{KPT_OP_IN_ONE_CALL}}) {
                const uint64_t id = begin_one(flags, scope, schema);
                EXPECT_EQ(is_inside(), flags != 0) << scope << schema;
                EXPECT_EQ(is_inside(), flags != 0) << scope << schema;
                end_op(id);
                EXPECT_FALSE(is_inside()) << scope << schema;
            }
}

/* A host whose kpt_op ends before the flags; the bytes behind it do not belong to it. */
TEST_F(OpenCalls, AnOlderHostPromisesNothing)
{
    kpt_op op = op_of("op");
    op.flags = KPT_OP_IN_ONE_CALL;
    op.struct_size = KPT_FIELD_END(kpt_op, external_id);
    const uint64_t id = begin_op(op);
    EXPECT_FALSE(is_inside());
    end_op(id);
}

TEST_F(OpenCalls, AnInnerOneInAnotherFrameEndsFirst)
{
    const uint64_t outer = begin_one(KPT_OP_IN_ONE_CALL);
    move_frame(true);
    const uint64_t inner = begin_one(KPT_OP_IN_ONE_CALL);
    move_frame(false);
    EXPECT_TRUE(is_inside());
    end_op(outer); /* not in order */
    EXPECT_TRUE(is_inside());
    end_op(inner);
    EXPECT_FALSE(is_inside());
}

TEST_F(OpenCalls, EndWithTheRun)
{
    const uint64_t id = begin_one(KPT_OP_IN_ONE_CALL);
    stop();
    start();
    EXPECT_FALSE(is_inside());
    end_op(id);
    EXPECT_FALSE(is_inside());
}

TEST_F(OpenCalls, AreTheirThreads)
{
    const uint64_t id = begin_one(KPT_OP_IN_ONE_CALL);
    std::thread([this] { EXPECT_FALSE(is_inside()); }).join();
    EXPECT_TRUE(is_inside());
    end_op(id);
}

TEST_F(Stack, DeepOnesSpanChunks)
{
    const uint32_t depth = 3000;
    args.flags = KPT_OBSERVER_STACKS;
    args.max_bytes = 65536;
    gather_stack(depth);
    begin();
    run("op");
    const json t = finish();
    EXPECT_EQ(t["kpytrace"]["stacks"].items.size(), depth);
    EXPECT_EQ(t["kpytrace"]["frames"].items.size(), depth);
    EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
}

TEST_F(Stack, ASecondFileHasThemToo)
{
    args.flags = KPT_OBSERVER_STACKS;
    gather_stack(2);
    for (const char *name : {"t.json", "u.json"}) {
        begin(name);
        run("op");
        EXPECT_EQ(finish(name)["kpytrace"]["stacks"].items.size(), 2U);
    }
}

} // namespace
