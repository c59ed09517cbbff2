/* elements_test.cc: ranges and data of integral inputs, whatever their layout in memory. */
#include "execution_trace/record/tensor_elements.h"

#include <filesystem>
#include <set>

#include "tests/native/execution_trace/observing.h"

namespace
{

class Elements : public Observing
{
  protected:
    template <class Number>
    kpt_tensor &integers(const Number *data, std::vector<int64_t> sizes, bool is_signed = true)
    {
        kpt_tensor &t = values.tensor(next_id += 16, std::move(sizes));
        t.data = data;
        t.element_bytes = sizeof(Number);
        t.elements = is_signed ? KPT_ELEMENTS_SIGNED : KPT_ELEMENTS_UNSIGNED;
        t.dtype = kpt_str_of("integer");
        return t;
    }
    /* The tensor_range of an operator with these. */
    std::string range_of(const std::vector<kpt_value> &in)
    {
        args.flags = KPT_OBSERVER_RANGES;
        begin();
        run("op", in);
        return attr_of(node_of(finish(), "op"), "tensor_range").text;
    }
    template <class Number> std::vector<Number> copied(const kpt_tensor &t)
    {
        std::vector<Number> out(kpti_elements_bytes(&t) / sizeof(Number));
        kpti_elements_copy(&t, out.data());
        return out;
    }
    uint64_t next_id = 0x1000;
};

TEST_F(Elements, RangesAreOfInputTensorsByTheirPlace)
{
    const int64_t a[] = {1, 2, 3, 4};
    const int64_t index[] = {0, 0, 1, 0};
    EXPECT_EQ(range_of({values.of(integers(a, {2, 2})), values.integer(1),
                        values.of(integers(index, {2, 2}))}),
              "{\"0\":[1,4],\"1\":[0,1]}");
}

TEST_F(Elements, AllWidthsWithAndWithoutSigns)
{
    const int8_t small[] = {-128, 5};
    const uint8_t bytes[] = {200, 5};
    const int16_t two[] = {-300, 7};
    const int32_t four[] = {INT32_MIN, 9};
    const uint64_t eight[] = {UINT64_MAX, 3};
    EXPECT_EQ(range_of({values.list({values.of(integers(small, {2})),
                                     values.of(integers(bytes, {2}, false))}),
                        values.of(integers(two, {2})), values.of(integers(four, {2})),
                        values.of(integers(eight, {2}, false))}),
              "{\"0\":[-128,5],\"1\":[5,200],\"2\":[-300,7],\"3\":[-2147483648,9],"
              "\"4\":[3,18446744073709551615]}");
}

TEST_F(Elements, WhatCantBeReadHasNoRange)
{
    const int64_t a[] = {7};
    kpt_tensor &absent = integers(a, {1});
    kpt_tensor &empty = integers(a, {0});
    kpt_tensor &odd = integers(a, {1});
    kpt_tensor &floating = values.tensor(0x9000, {1});
    kpt_tensor &symbolic = integers(a, {1});
    const int64_t too_many[] = {INT64_MAX, INT64_MAX};
    kpt_tensor &huge = integers(a, {1, 1});
    absent.data = nullptr;
    odd.element_bytes = 3;
    huge.sizes = too_many;
    floating.data = a;
    symbolic.sizes = nullptr;
    EXPECT_EQ(range_of({values.of(absent), values.of(empty), values.of(odd), values.of(floating),
                        values.of(symbolic), values.of(huge), values.of(integers(a, {}))}),
              "{\"6\":[7,7]}");
}

TEST_F(Elements, ViewsAreReadInTheirOwnOrder)
{
    const int32_t data[] = {0, 1, 2, 3, 4, 5};
    const int64_t turned[] = {1, 3};
    const int64_t repeated[] = {0, 1};
    const int64_t backwards[] = {-1};
    kpt_tensor &whole = integers(data, {2, 3});
    EXPECT_EQ(copied<int32_t>(whole), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
    kpt_tensor &transposed = integers(data, {3, 2});
    transposed.strides = turned;
    EXPECT_EQ(copied<int32_t>(transposed), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
    kpt_tensor &expanded = integers(data + 3, {2, 3});
    expanded.strides = repeated;
    expanded.offset_elements = 3; /* that data has already */
    EXPECT_EQ(copied<int32_t>(expanded), (std::vector<int32_t>{3, 4, 5, 3, 4, 5}));
    kpt_tensor &flipped = integers(data + 5, {4});
    flipped.strides = backwards;
    EXPECT_EQ(copied<int32_t>(flipped), (std::vector<int32_t>{5, 4, 3, 2}));
    const int64_t cube[] = {1, 2, 1};
    kpt_tensor &overlapping = integers(data, {2, 2, 2});
    overlapping.strides = cube;
    EXPECT_EQ(copied<int32_t>(overlapping), (std::vector<int32_t>{0, 1, 2, 3, 1, 2, 3, 4}));
}

TEST_F(Elements, DataGoesToTheResources)
{
    const int64_t a[] = {1, 2, 3, 4};
    const int64_t b[] = {0, 0, 1, 0};
    const int64_t turned[] = {1, 2};
    kpt_tensor &view = integers(b, {2, 2});
    view.strides = turned;
    args.data_ops = kpt_str_of("aten::embedding,aten::gather,");
    for (const char *name : {"t.json", "u.json"}) {
        begin(name);
        const uint64_t outer = begin_op(op_of("aten::gathe"), {values.of(view)});
        run("aten::gather", {values.of(integers(a, {4})), values.integer(1), values.of(view)},
            {values.of(view)});
        end_op(outer);
        const json t = finish(name);
        const std::string stem = std::string(name, 1) + "_resources/nid_" +
                                 node_of(t, "aten::gather")["id"].text + "_tid_";
        const std::string first = content(stem + "0.dat");
        const std::string second = content(stem + "1.dat");
        const int64_t expected[] = {0, 1, 0, 0};
        ASSERT_EQ(first.size(), sizeof a);
        ASSERT_EQ(second.size(), sizeof expected);
        EXPECT_EQ(memcmp(first.data(), a, sizeof a), 0);
        EXPECT_EQ(memcmp(second.data(), expected, sizeof expected), 0);
        EXPECT_FALSE(exists(stem + "2.dat")); /* inputs only */
        EXPECT_EQ(attr_of(node_of(t, "aten::gather"), "tensor_range").text, "");
    }
    EXPECT_EQ(files(), 4U);
}

TEST_F(Elements, DataMayBeLargerThanAnyChunk)
{
    const std::vector<int32_t> many(1000000, 42);
    args.data_ops = kpt_str_of("op");
    args.max_bytes = 65536;
    begin();
    run("op", {values.of(integers(many.data(), {1000, 1000}))});
    run("op", {values.of(integers(many.data(), {1}))});
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(content("t_resources/nid_3_tid_0.dat").size(), many.size() * 4);
    EXPECT_EQ(content("t_resources/nid_6_tid_0.dat").size(), 4U);
}

/* More data than one window maps, and a tensor that is larger than a window. */
TEST_F(Elements, DataMayBeLargerThanAnyMapping)
{
    const std::vector<int32_t> many(20 << 20, 42);
    const int64_t all = static_cast<int64_t>(many.size());
    args.data_ops = kpt_str_of("op");
    begin();
    for (const int64_t count : {all / 2, all / 2, all, int64_t{1}})
        run("op", {values.of(integers(many.data(), {count}))});
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
    std::multiset<uintmax_t> sizes;
    for (const auto &file : std::filesystem::directory_iterator(path("t_resources")))
        sizes.insert(file.file_size());
    const uintmax_t bytes = many.size() * 4;
    EXPECT_EQ(sizes, (std::multiset<uintmax_t>{4, bytes / 2, bytes / 2, bytes}));
}

} // namespace
