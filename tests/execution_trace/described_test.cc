/* Tensors that are named by their description alone. */
#include <gtest/gtest.h>

#include "observing.h"

namespace
{

class Described : public Observing
{
  protected:
    kpt_tensor &described(uint64_t id, uint64_t number)
    {
        kpt_tensor &t = values.tensor(id, {2, 3});
        t.description = number;
        return t;
    }

    static kpt_value named(uint64_t number)
    {
        kpt_value v = {};
        v.kind = KPT_VALUE_DESCRIBED;
        v.number = static_cast<int64_t>(number);
        return v;
    }

    /* What the observer answers; the operator's number if it is recorded. */
    kpt_status begin_with(const std::vector<kpt_value> &in, uint64_t *id)
    {
        kpt_op op = op_of("op");
        op.values = in.data();
        op.value_count = in.size();
        *id = 0;
        return kpti_execution_trace.begin_op(self, &op, id);
    }

    kpt_status end_with(uint64_t id, const std::vector<kpt_value> &out)
    {
        kpt_op op = op_of("op");
        op.values = out.data();
        op.value_count = out.size();
        return kpti_execution_trace.end_op(self, id, &op, kpt_str());
    }

    /* As a host does. */
    void run_named(const kpt_tensor &t)
    {
        uint64_t id;
        if (begin_with({named(t.description)}, &id) == KPT_DECLINED) {
            declined++;
            ASSERT_EQ(id, 0U);
            ASSERT_EQ(begin_with({values.of(t)}, &id), KPT_OK);
        }
        ASSERT_NE(id, 0U);
        if (end_with(id, {named(t.description)}) == KPT_DECLINED) {
            declined++;
            ASSERT_EQ(end_with(id, {values.of(t)}), KPT_OK);
        }
    }

    int declined = 0;
};

TEST_F(Described, IsTheTensorThatWasToldBefore)
{
    const kpt_tensor &t = described(0x1000, 7);
    begin();
    run("told", {values.of(t)});
    run("named", {named(7), values.list({named(7), values.integer(1)})}, {named(7)});
    const json all = finish();
    const json &node = node_of(all, "named");
    const std::string tensor = text_of(node_of(all, "told")["inputs"]["values"].items[0]);
    EXPECT_EQ(text_of(node["inputs"]["values"]), "[" + tensor + ",[" + tensor + ",1]]");
    EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[2,3],[[2,3],[]]]");
    EXPECT_EQ(text_of(node["outputs"]["values"]), "[" + tensor + "]");
}

TEST_F(Described, WhatIsNotKnownIsDeclined)
{
    const kpt_tensor &t = described(0x1000, 7);
    uint64_t id;
    begin();
    EXPECT_EQ(begin_with({named(7)}, &id), KPT_DECLINED);
    EXPECT_EQ(id, 0U);
    EXPECT_EQ(begin_with({named(0)}, &id), KPT_DECLINED);
    EXPECT_EQ(stats().ops, 0U);
    EXPECT_EQ(stats().dropped, 0U);
    EXPECT_EQ(begin_with({values.integer(5)}, &id), KPT_OK);
    EXPECT_EQ(end_with(id, {named(7)}), KPT_DECLINED);
    EXPECT_EQ(end_with(id, {values.of(t)}), KPT_OK);
    const json all = finish();
    expect_tree(all);
    EXPECT_EQ(all["nodes"].items.size(), 3U);
    EXPECT_EQ(text_of(node_of(all, "op")["outputs"]["shapes"]), "[[2,3]]");
    EXPECT_FALSE(attr_of(node_of(all, "op"), "kpytrace").has("ended_by"));
}

TEST_F(Described, IsDeclinedWhereItsElementsAreWanted)
{
    const int64_t numbers[] = {3, 1, 2, 9, 5, 4};
    kpt_tensor &t = described(0x1000, 7);
    uint64_t id;
    t.data = numbers;
    t.element_bytes = sizeof *numbers;
    t.elements = KPT_ELEMENTS_SIGNED;
    args.flags = KPT_OBSERVER_RANGES;
    begin();
    EXPECT_EQ(begin_with({values.integer(5)}, &id), KPT_OK);
    EXPECT_EQ(end_with(id, {values.of(t)}), KPT_OK); /* of outputs they never are */
    EXPECT_EQ(begin_with({named(7)}, &id), KPT_DECLINED);
    run("named", {values.of(t)}, {named(7)});
    const json all = finish();
    expect_tree(all);
    EXPECT_EQ(attr_of(node_of(all, "named"), "tensor_range").text, "{\"0\":[1,9]}");
}

TEST_F(Described, WhatADeclinedOperatorToldIsNotKnown)
{
    const kpt_tensor &old = described(0x1000, 7);
    const kpt_tensor &t = described(0x2000, 8);
    std::vector<kpt_value> many;
    uint64_t id;
    begin();
    run("old", {values.of(old)});
    EXPECT_EQ(begin_with({values.of(t), named(9)}, &id), KPT_DECLINED);
    EXPECT_EQ(begin_with({named(8)}, &id), KPT_DECLINED);
    run("named", {named(7)});          /* nothing else is forgotten */
    for (uint64_t i = 0; i < 100; i++) /* more than are kept apart: all are forgotten */
        many.push_back(values.of(described(0x3000 + i, 100 + i)));
    many.push_back(named(9));
    EXPECT_EQ(begin_with(many, &id), KPT_DECLINED);
    for (uint64_t i = 0; i < 100; i++)
        EXPECT_EQ(begin_with({named(100 + i)}, &id), KPT_DECLINED);
    run("told", {values.of(t)}, {named(8)});
    expect_tree(finish());
}

TEST_F(Described, EveryChunkIsToldOnce)
{
    const kpt_tensor &t = described(0x1000, 300);
    const int count = 5000;
    args.max_bytes = 65536;
    begin();
    for (int i = 0; i < count; i++)
        run_named(t);
    const json all = finish();
    ASSERT_EQ(all["nodes"].items.size(), static_cast<size_t>(count) + 2);
    for (int i = 0; i < count; i++) {
        const json &node = all["nodes"].items[static_cast<size_t>(i) + 1];
        ASSERT_EQ(text_of(node["inputs"]["shapes"]), "[[2,3]]");
        ASSERT_EQ(text_of(node["outputs"]["shapes"]), "[[2,3]]");
    }
    EXPECT_GT(declined, 1);
    EXPECT_LT(declined, 100);
}

} // namespace
