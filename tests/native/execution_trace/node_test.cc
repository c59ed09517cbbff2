/* node_test.cc: nodes, value by value, as torch's observer writes them. */
#include <cmath>
#include <limits>

#include "tests/native/execution_trace/observing.h"

namespace
{

class Node : public Observing
{
  protected:
    /* The node of an operator with these values in. */
    json with(const std::vector<kpt_value> &in)
    {
        begin();
        run("op", in);
        trace = finish();
        expect_tree(trace);
        return node_of(trace, "op");
    }
    json trace;
};

TEST_F(Node, WithoutOperatorsThereIsTheRoot)
{
    begin();
    const json t = finish();
    ASSERT_EQ(t["nodes"].items.size(), 1U);
    expect_tree(t);
    EXPECT_EQ(t["schema"].text, "1.1.1-chakra.0.0.4");
    EXPECT_EQ(t["pid"].text, std::to_string(getpid()));
    EXPECT_GE(t["finish_ts"].number(), t["start_ts"].number());
    EXPECT_EQ(t["time"].text.size(), strlen("2000-01-01 00:00:00"));
    EXPECT_EQ(t["kpytrace"]["complete"].text, "true");
}

TEST_F(Node, ScalarsAreAsTheyAre)
{
    const json node =
        with({values.integer(1), values.boolean(false), values.real(2.5), values.string("hello"),
              values.none(), values.of(KPT_VALUE_DEVICE, "cuda:1"),
              values.of(KPT_VALUE_OTHER, "GenericDict"), values.boolean(true),
              values.integer(std::numeric_limits<int64_t>::min())});
    EXPECT_EQ(text_of(node["inputs"]["values"]),
              "[1,false,2.5,\"hello\",\"<None>\",\"cuda:1\",\"<GenericDict>\",true,"
              "-9223372036854775808]");
    EXPECT_EQ(text_of(node["inputs"]["types"]),
              "[\"Int\",\"Bool\",\"Double\",\"String\",\"None\",\"Device\",\"GenericDict\","
              "\"Bool\",\"Int\"]");
    EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[],[],[],[],[],[],[],[],[]]");
    EXPECT_EQ(text_of(node["inputs"]["strides"]), "[[],[],[],[],[],[],[],[],[]]");
    EXPECT_EQ(text_of(node["outputs"]["values"]), "[]");
}

TEST_F(Node, DoublesReadBackTheSameAndAreShort)
{
    const std::vector<std::pair<double, const char *>> cases = {
        {1e-9, "1e-09"},
        {0.1, "0.1"},
        {1.0, "1.0"},
        {-0.0, "-0.0"},
        {1.0 / 3, "0.3333333333333333"},
        {1e300, "1e+300"},
        {0.1 + 0.2, "0.30000000000000004"},
        {std::numeric_limits<double>::denorm_min(), nullptr},
        {std::numeric_limits<double>::max(), nullptr},
        {INFINITY, "\"inf\""},
        {-INFINITY, "\"-inf\""},
        {NAN, "\"nan\""},
    };
    std::vector<kpt_value> in;
    for (const auto &c : cases)
        in.push_back(values.real(c.first));
    const json node = with(in);
    for (size_t i = 0; i < cases.size(); i++) {
        const json &got = node["inputs"]["values"].items[i];
        if (cases[i].second) {
            EXPECT_EQ(text_of(got), cases[i].second);
        }
        if (got.is == json::NUMBER) {
            EXPECT_EQ(strtod(got.text.c_str(), nullptr), cases[i].first);
        }
    }
}

TEST_F(Node, TensorsHaveIdsShapesTypesAndStrides)
{
    kpt_tensor &a = values.tensor(0x1000, {3, 4});
    kpt_tensor &b = values.tensor(0x2000, {});
    a.offset_elements = 7;
    b.dtype = kpt_str_of("long int");
    b.device = kpt_str_of("cuda:0");
    b.element_bytes = 8;
    const json node = with({values.of(a), values.of(b), values.of(a)});
    EXPECT_EQ(node["id"].text, "3"); /* behind the thread's, before its inputs */
    EXPECT_EQ(text_of(node["inputs"]["values"]),
              "[[4,5,7,12,4,\"cpu\"],[6,7,0,1,8,\"cuda:0\"],[4,5,7,12,4,\"cpu\"]]");
    EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[3,4],[],[3,4]]");
    EXPECT_EQ(text_of(node["inputs"]["strides"]), "[[4,1],[],[4,1]]");
    EXPECT_EQ(text_of(node["inputs"]["types"]),
              "[\"Tensor(float)\",\"Tensor(long int)\",\"Tensor(float)\"]");
}

TEST_F(Node, NumbersOfTensorsMayBeLargeOrNegative)
{
    kpt_tensor &t = values.tensor(0x1000, {INT64_C(5000000000), 2});
    const int64_t strides[] = {-1, INT64_C(1) << 40};
    t.strides = strides;
    const json node = with({values.of(t)});
    EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[5000000000,2]]");
    EXPECT_EQ(text_of(node["inputs"]["strides"]), "[[-1,1099511627776]]");
    EXPECT_EQ(text_of(node["inputs"]["values"]), "[[4,5,0,10000000000,4,\"cpu\"]]");
}

TEST_F(Node, SymbolicSizesAreEmptyAndSparseTensorsHaveNoStrides)
{
    kpt_tensor &symbolic = values.tensor(0x1000, {3, 4});
    kpt_tensor &sparse = values.tensor(0x2000, {3, 4});
    symbolic.sizes = symbolic.strides = nullptr;
    sparse.strides = nullptr;
    const json node = with({values.of(symbolic), values.of(sparse)});
    EXPECT_EQ(text_of(node["inputs"]["values"]), "[[4,0,0,0,0,\"\"],[5,6,0,12,4,\"cpu\"]]");
    EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[],[3,4]]");
    EXPECT_EQ(text_of(node["inputs"]["strides"]), "[[],[]]");
    EXPECT_EQ(text_of(node["inputs"]["types"]), "[\"Tensor(float)\",\"Tensor(float)\"]");
}

TEST_F(Node, ListsAndTuplesNest)
{
    const kpt_value u = values.of(values.tensor(0x1000, {2}));
    const kpt_value inner = values.list({u, values.integer(1)}, KPT_VALUE_TUPLE);
    const json node = with({values.list({u, u}), values.list({}), values.list({inner, inner})});
    EXPECT_EQ(text_of(node["inputs"]["values"]),
              "[[[4,5,0,2,4,\"cpu\"],[4,5,0,2,4,\"cpu\"]],[],"
              "[[[4,5,0,2,4,\"cpu\"],1],[[4,5,0,2,4,\"cpu\"],1]]]");
    EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[[2],[2]],[],[[[2],[]],[[2],[]]]]");
    EXPECT_EQ(text_of(node["inputs"]["types"]),
              "[\"GenericList[Tensor(float),Tensor(float)]\",\"GenericList[]\","
              "\"GenericList[Tuple[Tensor(float),Int],Tuple[Tensor(float),Int]]\"]");
    EXPECT_EQ(text_of(node["inputs"]["strides"]), "[[[1],[1]],[],[[[1],[]],[[1],[]]]]");
}

TEST_F(Node, LongListsAreCut)
{
    const json node =
        with({values.list(std::vector<kpt_value>(5000, values.integer(7))), values.integer(1)});
    EXPECT_EQ(node["inputs"]["values"].items[0].items.size(), 4097U);
    EXPECT_EQ(node["inputs"]["shapes"].items[0].items.size(), 4097U);
    EXPECT_EQ(node["inputs"]["values"].items[1].text, "1");
}

TEST_F(Node, AnOperatorsOwnValuesAreNot)
{
    const json node = with(std::vector<kpt_value>(5000, values.integer(7)));
    for (const char *side : {"values", "shapes", "types"})
        EXPECT_EQ(node["inputs"][side].items.size(), 5000U);
}

TEST_F(Node, WhatIsNestedTooDeepIsNamedOnly)
{
    kpt_value v = values.integer(1);
    for (int i = 0; i < 100; i++)
        v = values.list({v});
    const json node = with({v, values.integer(2)});
    EXPECT_NE(text_of(node["inputs"]["values"]).find("<Nested>"), std::string::npos);
    EXPECT_EQ(node["inputs"]["values"].items[1].text, "2");
}

TEST_F(Node, WhatCantBeIsLeftOut)
{
    kpt_value no_tensor = {};
    kpt_value no_items = {};
    kpt_value no_text = {};
    kpt_value newer = {};
    kpt_tensor &small = values.tensor(0x1000, {2});
    no_tensor.kind = KPT_VALUE_TENSOR;
    no_items.kind = KPT_VALUE_LIST;
    no_items.item_count = 3;
    no_text.kind = KPT_VALUE_STRING;
    no_text.text.size = 3;
    newer.kind = 99;
    small.struct_size = 8;
    const json node = with({no_tensor, no_items, no_text, newer, values.of(small)});
    EXPECT_EQ(text_of(node["inputs"]["values"]), "[\"<None>\",[],\"\",\"<Unknown>\",\"<None>\"]");
}

TEST_F(Node, AV1TensorIsReadNoFurther)
{
    kpt_tensor &t = values.tensor(0x1000, {2});
    t.struct_size = KPT_TENSOR_V1_SIZE;
    t.generation = 77;
    const json node = with({values.of(t), values.of(values.tensor(0x1000, {2}))});
    EXPECT_EQ(text_of(node["inputs"]["values"]), "[[4,5,0,2,4,\"cpu\"],[4,5,0,2,4,\"cpu\"]]");
}

TEST_F(Node, AStreamHasNoStride)
{
    kpt_value stream = values.integer(7);
    stream.kind = KPT_VALUE_STREAM;
    const json node = with({values.of(values.tensor(0x1000, {2})), values.integer(3), stream});
    EXPECT_EQ(text_of(node["inputs"]["values"]), "[[4,5,0,2,4,\"cpu\"],3,7]");
    EXPECT_EQ(text_of(node["inputs"]["types"]), "[\"Tensor(float)\",\"Int\",\"Int\"]");
    EXPECT_EQ(text_of(node["inputs"]["shapes"]), "[[2],[],[]]");
    EXPECT_EQ(text_of(node["inputs"]["strides"]), "[[1],[]]");
}

TEST_F(Node, AttributesComeInTorchsOrder)
{
    kpt_op op = op_of("triton_poi_0");
    op.schema = kpt_str_of("aten::add(Tensor self) -> Tensor");
    op.kernel_backend = kpt_str_of("triton");
    op.kernel_file = kpt_str_of("kernel.py");
    op.record_id = 12;
    op.scope = 1;
    op.sequence = 5;
    op.thread = 3;
    op.forward_thread = 9; /* never seen, so there is no parent, and no crash */
    op.external_id = 512;
    begin();
    end_op(begin_op(op));
    const json t = finish();
    const json &node = node_of(t, "triton_poi_0");
    const char *const expected[][3] = {{"rf_id", "uint64", "12"},
                                       {"fw_parent", "uint64", "0"},
                                       {"seq_id", "int64", "5"},
                                       {"scope", "uint64", "1"},
                                       {"tid", "uint64", "3"},
                                       {"fw_tid", "uint64", "9"},
                                       {"op_schema", "string", "aten::add(Tensor self) -> Tensor"},
                                       {"kernel_backend", "string", "triton"},
                                       {"kernel_file", "string", "kernel.py"},
                                       {"tensor_range", "string", ""},
                                       {"kpytrace", "map", ""}};
    ASSERT_EQ(node["attrs"].items.size(), std::size(expected));
    for (size_t i = 0; i < std::size(expected); i++) {
        EXPECT_EQ(node["attrs"].items[i]["name"].text, expected[i][0]);
        EXPECT_EQ(node["attrs"].items[i]["type"].text, expected[i][1]);
        EXPECT_EQ(node["attrs"].items[i]["value"].text, expected[i][2]);
    }
    EXPECT_EQ(extra_of(node, "os_tid").text, std::to_string(gettid()));
    EXPECT_EQ(extra_of(node, "ext_id").text, "512");
    EXPECT_FALSE(attr_of(node, "kpytrace").has("stack"));
}

/* Their texts are at the same addresses. */
TEST_F(Node, CallsOfOneFunctionMayDifferInScopeAndThreads)
{
    kpt_op op = op_of("op");
    std::vector<std::string> expected;
    std::vector<std::string> found;
    begin();
    for (uint32_t i = 0; i < 16; i++) {
        op.scope = i & 1;
        op.thread = 10 + (i >> 1 & 1);
        op.forward_thread = 20 + (i >> 2 & 1);
        expected.push_back(std::to_string(op.scope) + " " + std::to_string(op.thread) + " " +
                           std::to_string(op.forward_thread));
        end_op(begin_op(op));
    }
    const json t = finish();
    for (const json &node : t["nodes"].items)
        if (node["name"].text == "op")
            found.push_back(attr_of(node, "scope").text + " " + attr_of(node, "tid").text + " " +
                            attr_of(node, "fw_tid").text);
    EXPECT_EQ(found, expected);
}

TEST_F(Node, TimesAreUnixTime)
{
    const int64_t before = time(nullptr);
    begin();
    const uint64_t outer = begin_op(op_of("outer"));
    run("inner");
    end_op(outer);
    const json t = finish();
    const json &a = node_of(t, "outer");
    const json &b = node_of(t, "inner");
    const int64_t a_start = std::stoll(extra_of(a, "start_ns").text);
    const int64_t b_start = std::stoll(extra_of(b, "start_ns").text);
    EXPECT_LE(a_start, b_start);
    EXPECT_LE(b_start + std::stoll(extra_of(b, "dur_ns").text),
              a_start + std::stoll(extra_of(a, "dur_ns").text));
    EXPECT_GE(a_start / 1000000000, before - 1);
    EXPECT_LE(a_start / 1000000000, time(nullptr) + 1);
}

TEST_F(Node, TheHostsAttributesFollow)
{
    kpt_attr at_begin[2] = {};
    kpt_attr at_end[1] = {};
    kpt_op op = op_of("record_param_comms");
    at_begin[0] = {kpt_str_of("collective_name"), kpt_str_of("string"),
                   values.string("all\"reduce")};
    at_begin[1] = {kpt_str_of("in_msg_nelems"), kpt_str_of("uint64"), values.integer(-1)};
    at_end[0] = {kpt_str_of("is_asynchronized_op"), kpt_str_of("bool"), values.boolean(true)};
    op.attrs = at_begin;
    op.attr_count = 2;
    begin();
    const uint64_t id = begin_op(op, {values.integer(4)});
    op.attrs = at_end;
    op.attr_count = 1;
    EXPECT_EQ(kpti_execution_trace.end_op(self, id, &op, kpt_str()), KPT_OK);
    const json t = finish();
    const json &node = node_of(t, "record_param_comms");
    ASSERT_EQ(node["attrs"].items.size(), 14U);
    EXPECT_EQ(attr_of(node, "collective_name").text, "all\"reduce");
    EXPECT_EQ(attr_of(node, "in_msg_nelems").text, "18446744073709551615");
    EXPECT_EQ(attr_of(node, "is_asynchronized_op").text, "true");
    EXPECT_EQ(node["attrs"].items[12]["type"].text, "bool");
    EXPECT_EQ(node["attrs"].items[13]["name"].text, "kpytrace");
}

TEST_F(Node, NamesMayHaveAnyBytes)
{
    begin();
    run("a \"quoted\"\n\\name\x01");
    run("broken \xff\xc3 utf-8 \xc3\xa4");
    const json t = finish();
    EXPECT_EQ(node_of(t, "a \"quoted\"\n\\name\x01")["id"].text, "3");
    EXPECT_EQ(node_of(t, "broken \xef\xbf\xbd\xef\xbf\xbd utf-8 \xc3\xa4")["id"].text, "4");
}

TEST_F(Node, ANameThatChangesWhereItIsIsReadAnew)
{
    char name[] = "op 0";
    begin();
    for (char i = '0'; i < '9'; i++) {
        name[3] = i;
        run(name);
    }
    const json t = finish();
    for (char i = '0'; i < '9'; i++)
        EXPECT_EQ(node_of(t, std::string("op ") + i)["ctrl_deps"].text, "2");
}

TEST_F(Node, ATensorThatDiedIsAnotherOne)
{
    kpt_tensor &t = values.tensor(0x1000, {2});
    begin();
    run("first", {values.of(t)});
    run("again", {values.of(t)});
    t.generation = 1; /* another tensor at the same address, in the same storage */
    run("other", {values.of(t)});
    t.storage_generation = 1;
    run("moved", {values.of(t)});
    const json trace_of = finish();
    EXPECT_EQ(text_of(node_of(trace_of, "first")["inputs"]["values"]), "[[4,5,0,2,4,\"cpu\"]]");
    EXPECT_EQ(text_of(node_of(trace_of, "again")["inputs"]["values"]), "[[4,5,0,2,4,\"cpu\"]]");
    EXPECT_EQ(text_of(node_of(trace_of, "other")["inputs"]["values"]), "[[8,5,0,2,4,\"cpu\"]]");
    EXPECT_EQ(text_of(node_of(trace_of, "moved")["inputs"]["values"]), "[[8,10,0,2,4,\"cpu\"]]");
}

} // namespace
