/* journal_test.cc: chunks that fill up: all records of a chunk are in the file, whatever its size. */
#include "tests/native/execution_trace/observing.h"

namespace
{

using Journal = Observing;

TEST_F(Journal, ManyOperatorsInSmallAndLargeChunks)
{
    const uint64_t max[] = {1, 65536, 0};
    for (const uint64_t max_bytes : max) {
        const int count = 3000;
        args.max_bytes = max_bytes;
        begin();
        for (int i = 0; i < count; i++)
            run(i % 2 ? "odd" : "even", {values.integer(i)}, {values.real(i)});
        EXPECT_EQ(stats().ops, static_cast<uint64_t>(count));
        EXPECT_GT(stats().journal_bytes, 65536U);
        const json t = finish();
        ASSERT_EQ(t["nodes"].items.size(), static_cast<size_t>(count) + 2);
        for (int i = 0; i < count; i++) {
            const json &node = t["nodes"].items[static_cast<size_t>(i) + 1];
            ASSERT_EQ(node["name"].text, i % 2 ? "odd" : "even");
            ASSERT_EQ(node["inputs"]["values"].items[0].text, std::to_string(i));
        }
        EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
        kpti_execution_trace.destroy(self);
        self = nullptr;
    }
}

TEST_F(Journal, DeepNestingKeepsRoomForEnds)
{
    const int depth = 2000;
    std::vector<uint64_t> open_ops;
    args.max_bytes = 65536;
    begin();
    for (int i = 0; i < depth; i++)
        open_ops.push_back(begin_op(op_of("op")));
    for (; !open_ops.empty(); open_ops.pop_back())
        end_op(open_ops.back(), {values.integer(1)});
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(t["nodes"].items.size(), static_cast<size_t>(depth) + 2);
}

TEST_F(Journal, TextsOfAnyLength)
{
    const std::string name(300000, 'n');
    const std::string value(500000, 'v');
    args.max_bytes = 65536;
    begin();
    run(name.c_str(), {values.string(value.c_str())});
    run("after");
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(node_of(t, name)["inputs"]["values"].items[0].text, value);
    EXPECT_EQ(node_of(t, "after")["ctrl_deps"].text, "2");
}

TEST_F(Journal, MoreTextsThanAreRemembered)
{
    const size_t count = 1000;
    std::vector<std::string> names;
    for (size_t i = 0; i < count; i++)
        names.push_back("aten::op_" + std::to_string(i));
    begin();
    for (int round = 0; round < 2; round++)
        for (const std::string &name : names)
            run(name.c_str());
    const json t = finish();
    ASSERT_EQ(t["nodes"].items.size(), 2 * count + 2);
    for (size_t i = 0; i < 2 * count; i++)
        ASSERT_EQ(t["nodes"].items[i + 1]["name"].text, names[i % count]);
}

TEST_F(Journal, ATensorIsInAChunkOnce)
{
    kpt_tensor &t = values.tensor(0x1000, {2, 3, 4, 5});
    const int count = 5000; /* in several chunks, each of which has its own copy */
    args.max_bytes = 65536;
    begin();
    for (int i = 0; i < count; i++)
        run("op", {values.of(t), values.list({values.of(t)}), values.of(t)}, {values.of(t)});
    const uint64_t with_tensors = stats().journal_bytes;
    const json same = finish();
    ASSERT_EQ(same["nodes"].items.size(), static_cast<size_t>(count) + 2);
    for (int i = 0; i < count; i++) {
        const json &node = same["nodes"].items[static_cast<size_t>(i) + 1];
        ASSERT_EQ(text_of(node["inputs"]["values"]),
                  "[[4,5,0,120,4,\"cpu\"],[[4,5,0,120,4,\"cpu\"]],[4,5,0,120,4,\"cpu\"]]");
        ASSERT_EQ(text_of(node["outputs"]["shapes"]), "[[2,3,4,5]]");
    }
    begin("numbers.json");
    for (int i = 0; i < count; i++)
        run("op", {values.integer(1), values.list({values.integer(1)}), values.integer(1)},
            {values.integer(1)});
    EXPECT_LE(with_tensors, stats().journal_bytes); /* a number takes two words */
    (void)finish("numbers.json");
}

TEST_F(Journal, ATensorThatChangedIsNotTheSame)
{
    kpt_tensor &t = values.tensor(0x1000, {2, 3});
    const int64_t swapped[] = {3, 2};
    const int64_t columns[] = {1, 3};
    begin();
    run("first", {values.of(t)});
    t.sizes = swapped;
    run("sizes", {values.of(t)});
    t.strides = columns;
    run("strides", {values.of(t)});
    t.offset_elements = 1;
    run("offset", {values.of(t)});
    t.dtype = kpt_str_of("int");
    run("type", {values.of(t)});
    const json trace_of = finish();
    const auto inputs = [&trace_of](const char *name, const char *part) {
        return text_of(node_of(trace_of, name)["inputs"][part]);
    };
    EXPECT_EQ(inputs("first", "shapes"), "[[2,3]]");
    EXPECT_EQ(inputs("sizes", "shapes"), "[[3,2]]");
    EXPECT_EQ(inputs("sizes", "strides"), "[[3,1]]");
    EXPECT_EQ(inputs("strides", "strides"), "[[1,3]]");
    EXPECT_EQ(inputs("strides", "values"), "[[4,5,0,6,4,\"cpu\"]]");
    EXPECT_EQ(inputs("offset", "values"), "[[4,5,1,6,4,\"cpu\"]]");
    EXPECT_EQ(inputs("offset", "types"), "[\"Tensor(float)\"]");
    EXPECT_EQ(inputs("type", "types"), "[\"Tensor(int)\"]");
}

} // namespace
