/* state_test.cc: operators around starts, stops and errors: the tree stays consistent. */
#include "tests/native/execution_trace/observing.h"

namespace
{

using State = Observing;

TEST_F(State, ChildrenComeBeforeParents)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    const uint64_t b = begin_op(op_of("b"));
    run("c");
    end_op(b);
    end_op(a);
    const json t = finish();
    expect_tree(t);
    const char *const order[] = {"[pytorch|profiler|execution_trace|thread]", "c", "b", "a"};
    for (size_t i = 0; i < std::size(order); i++)
        EXPECT_EQ(t["nodes"].items[i]["name"].text, order[i]);
    EXPECT_EQ(node_of(t, order[0])["ctrl_deps"].text, "1");
    EXPECT_EQ(node_of(t, "a")["ctrl_deps"].text, "2");
    EXPECT_EQ(node_of(t, "b")["ctrl_deps"].text, node_of(t, "a")["id"].text);
    EXPECT_EQ(node_of(t, "c")["ctrl_deps"].text, node_of(t, "b")["id"].text);
}

TEST_F(State, AnOperatorThatRaisesIsWrittenAndPopped)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    const uint64_t b = begin_op(op_of("b"), {values.integer(1)});
    end_op(b, {}, "RuntimeError: \"no\"");
    run("c");
    end_op(a);
    run("d");
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(attr_of(node_of(t, "b"), "error").text, "RuntimeError: \"no\"");
    EXPECT_EQ(attr_of(node_of(t, "a"), "error").is, json::NOTHING);
    EXPECT_EQ(node_of(t, "c")["ctrl_deps"].text, node_of(t, "a")["id"].text);
    EXPECT_EQ(node_of(t, "d")["ctrl_deps"].text, "2");
}

TEST_F(State, WhatIsOpenAtAStopEndsThere)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    const uint64_t b = begin_op(op_of("b"));
    ASSERT_EQ(stop(), KPT_OK);
    end_op(b, {values.integer(1)});
    ASSERT_EQ(start(), KPT_OK);
    run("c");
    end_op(a, {values.integer(1)}); /* of the previous run, so it is ignored */
    run("d");
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(extra_of(node_of(t, "a"), "ended_by").text, "stop");
    EXPECT_EQ(extra_of(node_of(t, "b"), "ended_by").text, "stop");
    EXPECT_EQ(text_of(node_of(t, "a")["outputs"]["values"]), "[]");
    EXPECT_EQ(node_of(t, "b")["ctrl_deps"].text, node_of(t, "a")["id"].text);
    EXPECT_EQ(node_of(t, "c")["ctrl_deps"].text, "2"); /* one node of the thread in all */
    EXPECT_EQ(node_of(t, "d")["ctrl_deps"].text, "2");
    EXPECT_FALSE(attr_of(node_of(t, "d"), "kpytrace").has("ended_by"));
    EXPECT_EQ(t["nodes"].items.size(), 6U);
}

TEST_F(State, NothingIsRecordedBeforeAStart)
{
    make();
    ASSERT_EQ(open("t.json"), KPT_OK);
    EXPECT_EQ(run("early"), 0U);
    ASSERT_EQ(start(), KPT_OK);
    EXPECT_NE(run("op"), 0U);
    ASSERT_EQ(stop(), KPT_OK);
    EXPECT_EQ(run("late"), 0U);
    EXPECT_EQ(stats().ops, 1U);
    const json t = finish();
    EXPECT_EQ(t["nodes"].items.size(), 3U);
}

TEST_F(State, AnEndTwiceOrOfNothingIsNone)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    end_op(a, {values.integer(1)});
    end_op(a, {values.integer(2)});
    end_op(a + 1000);
    end_op(UINT64_MAX);
    run("b");
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(t["nodes"].items.size(), 4U);
    EXPECT_EQ(text_of(node_of(t, "a")["outputs"]["values"]), "[1]");
}

TEST_F(State, OneThatEndsBeforeItsChildIsWrittenThen)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    const uint64_t b = begin_op(op_of("b"));
    end_op(a);
    run("c");
    end_op(b);
    run("d");
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(node_of(t, "c")["ctrl_deps"].text, node_of(t, "b")["id"].text);
    EXPECT_EQ(node_of(t, "b")["ctrl_deps"].text, node_of(t, "a")["id"].text);
    EXPECT_EQ(node_of(t, "d")["ctrl_deps"].text, "2");
}

TEST_F(State, EachFileBeginsAnew)
{
    for (int i = 0; i < 4; i++) {
        begin();
        run("op", {values.of(values.tensor(0x1000, {2}))});
        const json t = finish();
        expect_tree(t);
        EXPECT_EQ(t["nodes"].items.size(), 3U);
        EXPECT_EQ(text_of(node_of(t, "op")["inputs"]["values"]), "[[4,5,0,2,4,\"cpu\"]]");
        EXPECT_EQ(files(), 1U); /* no journal remains */
    }
}

TEST_F(State, DestroyCompletesTheFile)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    EXPECT_NE(a, 0U);
    kpti_execution_trace.destroy(self);
    self = nullptr;
    expect_tree(read());
    EXPECT_EQ(extra_of(node_of(read(), "a"), "ended_by").text, "stop");
    EXPECT_EQ(files(), 1U);
}

TEST_F(State, ObserversDontKnowEachOther)
{
    const kpti_observer_impl &impl = kpti_execution_trace;
    const int others = 6; /* more than a thread remembers */
    void *other[others];
    kpti_error text = {""};
    kpt_op op = op_of("both");
    begin();
    for (int i = 0; i < others; i++) {
        const std::string target = path("o" + std::to_string(i) + ".json");
        ASSERT_EQ(impl.make(&env, &args, &other[i], &text), KPT_OK);
        ASSERT_EQ(impl.open(other[i], target.c_str(), &text), KPT_OK);
        ASSERT_EQ(impl.start(other[i], &text), KPT_OK);
    }
    for (int round = 0; round < 3; round++) {
        const uint64_t mine = begin_op(op);
        for (int i = 0; i < others; i++) {
            uint64_t id = 0;
            EXPECT_EQ(impl.begin_op(other[i], &op, &id), KPT_OK);
            EXPECT_EQ(impl.end_op(other[i], id, &op, kpt_str()), KPT_OK);
        }
        end_op(mine);
    }
    run("mine");
    for (int i = 0; i < others; i++) {
        impl.destroy(other[i]);
        const json t = read("o" + std::to_string(i) + ".json");
        expect_tree(t);
        EXPECT_EQ(t["nodes"].items.size(), 5U);
    }
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(t["nodes"].items.size(), 6U);
}

} // namespace
