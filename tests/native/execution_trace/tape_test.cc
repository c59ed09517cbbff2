/* Operators that a host writes onto its tape itself. */
#include <thread>

#include "tests/native/execution_trace/limit.h"
#include "tests/native/execution_trace/observing.h"

namespace
{

/* Writes words of the test's choice, as a host does. */
class Tape : public Observing
{
  protected:
    /* Returns the calling thread's tape after it has recorded: a thread's first operator takes the path of
     * begin_op. */
    kpt_tape *ready()
    {
        kpt_tape *tape = kpti_execution_trace.tape(self);
        run("first");
        EXPECT_EQ(kpti_execution_trace.tape(self), tape);
        return tape;
    }

    static void put(kpt_tape *tape, const std::vector<uint64_t> &words)
    {
        ASSERT_LE(words.size(), static_cast<size_t>(tape->limit - tape->at));
        tape->at = std::copy(words.begin(), words.end(), tape->at);
    }

    static uint64_t head(uint8_t kind, uint32_t size = 0, uint16_t dimensions = 0,
                         uint8_t flags = 0)
    {
        const kpt_tape_value value = {kind, flags, dimensions, size};
        uint64_t word;
        memcpy(&word, &value, sizeof word);
        return word;
    }

    static uint64_t two(uint64_t low, uint64_t high)
    {
        return low | high << 32;
    }

    /* Writes a matrix of floats on the CPU, with its own strides. Returns its offset. */
    static uint32_t put_matrix(kpt_tape *tape, uint64_t id, uint32_t rows, uint32_t columns)
    {
        const uint32_t dtype = tape->ops->text(tape, kpt_str_of("float"));
        const uint32_t device = tape->ops->text(tape, kpt_str_of("cpu"));
        const auto place = static_cast<uint32_t>(tape->at - tape->base);
        put(tape, {head(KPT_VALUE_TENSOR, 4, 2), two(dtype, device), id, id + 1,
                   two(0, uint64_t{rows} * columns), two(rows, columns), two(columns, 1)});
        return place;
    }

    static uint32_t function(kpt_tape *tape, const char *name, uint32_t scope = 0)
    {
        kpt_op op = op_of(name);
        op.scope = scope;
        op.schema = kpt_str_of("a schema");
        op.flags = flags_of_ops;
        return tape->ops->function(tape, &op);
    }

    /* KPT_OP_*, of those that are written. */
    static inline uint32_t flags_of_ops = 0;

    /* Returns whether the tape has space for the words of these tests. */
    static bool has_space(const kpt_tape *tape)
    {
        return tape->limit - tape->at > 32;
    }

    /* Begins an operator NAME with the input I and the words that WRITE adds. Returns its number, or 0 if
     * there is no space. */
    static uint64_t begin_with(
        kpt_tape *tape, const char *name, int64_t i,
        const std::function<uint32_t()> &write = [] { return 0U; })
    {
        if (!tape->ops->begin(tape)) return 0;
        const uint32_t place = function(tape, name);
        if (!place || !has_space(tape)) {
            tape->ops->give_up(tape);
            return 0;
        }
        put(tape, {head(KPT_VALUE_INT), static_cast<uint64_t>(i)});
        return tape->ops->begun(tape, place, static_cast<uint64_t>(i), -1, 1 + write());
    }

    /* Ends it with the output I. Returns false if it can't be ended on the tape. */
    static bool end_with(kpt_tape *tape, uint64_t id, int64_t i)
    {
        if (!tape->ops->end(tape, id)) return false;
        if (!has_space(tape)) {
            tape->ops->give_up(tape);
            return false;
        }
        put(tape, {head(KPT_VALUE_INT), static_cast<uint64_t>(i)});
        tape->ops->ended(tape, 1);
        return true;
    }
};

TEST_F(Tape, HasValuesOfEachKind)
{
    begin();
    kpt_tape *tape = ready();
    ASSERT_TRUE(tape->ops->begin(tape));
    const uint32_t place = function(tape, "op", 1);
    const uint32_t device = tape->ops->text(tape, kpt_str_of("cuda:1"));
    const double real = 2.5;
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    put(tape, {head(KPT_VALUE_NONE), head(KPT_VALUE_BOOL), 1, head(KPT_VALUE_INT),
               static_cast<uint64_t>(-5), head(KPT_VALUE_DOUBLE), bits, head(KPT_VALUE_STRING, 2),
               uint64_t{'h'} | uint64_t{'i'} << 8, head(KPT_VALUE_DEVICE, device),
               head(KPT_VALUE_LIST, 2), head(KPT_VALUE_NONE), head(KPT_VALUE_TUPLE, 0)});
    const uint64_t id = tape->ops->begun(tape, place, 77, 5, 7);
    ASSERT_NE(id, 0U);
    ASSERT_TRUE(tape->ops->end(tape, id));
    put_matrix(tape, 0x1000, 3, 4);
    tape->ops->ended(tape, 1);
    const json all = finish();
    const json &node = node_of(all, "op");
    EXPECT_EQ(text_of(node["inputs"]["values"]),
              "[\"<None>\",true,-5,2.5,\"hi\",\"cuda:1\",[\"<None>\",[]]]");
    EXPECT_EQ(text_of(node["outputs"]["shapes"]), "[[3,4]]");
    EXPECT_EQ(text_of(node["outputs"]["strides"]), "[[4,1]]");
    EXPECT_EQ(text_of(node["outputs"]["types"]), "[\"Tensor(float)\"]");
    EXPECT_EQ(attr_of(node, "rf_id").text, "77");
    EXPECT_EQ(attr_of(node, "seq_id").text, "5");
    EXPECT_EQ(attr_of(node, "scope").text, "1");
    EXPECT_EQ(attr_of(node, "op_schema").text, "a schema");
    EXPECT_EQ(stats().ops, 2U);
    expect_tree(all);
}

TEST_F(Tape, IsTheSameAsWhatIsReported)
{
    const auto texts = [this](const char *file, bool on_tape) {
        begin(file);
        kpt_tape *tape = ready();
        if (on_tape) {
            const uint64_t id = begin_with(tape, "op", 5, [tape] {
                const uint32_t place = put_matrix(tape, 0x1000, 2, 3);
                put(tape, {head(KPT_TAPE_SAME, place)});
                return 2U;
            });
            EXPECT_TRUE(end_with(tape, id, 6));
        } else {
            kpt_op op = op_of("op");
            const kpt_value matrix = values.of(values.tensor(0x1000, {2, 3}));
            op.schema = kpt_str_of("a schema");
            op.record_id = 5;
            op.sequence = -1;
            end_op(begin_op(op, {values.integer(5), matrix, matrix}), {values.integer(6)});
        }
        const json all = finish(file);
        const json &node = node_of(all, "op");
        std::string text = node["id"].text;
        for (const char *side : {"inputs", "outputs"})
            for (const char *name : {"values", "shapes", "types", "strides"})
                text += " " + text_of(node[side][name]);
        for (const char *name : {"rf_id", "fw_parent", "seq_id", "scope", "tid", "op_schema"})
            text += " " + attr_of(node, name).text;
        return text;
    };
    const std::string reported = texts("reported.json", false);
    EXPECT_EQ(texts("taped.json", true), reported);
    EXPECT_NE(reported.find("[2,3]"), std::string::npos);
}

TEST_F(Tape, ATensorIsNamedByItsPlaceAsLongAsTheSerialIsTheSame)
{
    const int count = 5000;
    uint32_t serial = 0;
    uint32_t place = 0;
    int serials = 0;
    args.max_bytes = 65536;
    begin();
    kpt_tape *tape = ready();
    for (int i = 0; i < count; i++) {
        const uint64_t id = begin_with(tape, "op", i, [&] {
            if (tape->serial == serial) {
                put(tape, {head(KPT_TAPE_SAME, place)});
            } else {
                serial = tape->serial;
                place = put_matrix(tape, 0x1000, 3, 4);
                serials++;
            }
            return 1U;
        });
        if (!id) { /* the chunk is full; begin_op allocates another one */
            run("op", {values.integer(i), values.of(values.tensor(0x1000, {3, 4}))});
            continue;
        }
        if (!end_with(tape, id, i)) end_op(id, {values.integer(i)});
    }
    const json all = finish();
    EXPECT_GT(serials, 3);
    EXPECT_EQ(all["kpytrace"]["damaged"].text, "0");
    ASSERT_EQ(all["nodes"].items.size(), static_cast<size_t>(count) + 3);
    for (int i = 0; i < count; i++) {
        const json &node = all["nodes"].items[static_cast<size_t>(i) + 2];
        ASSERT_EQ(text_of(node["inputs"]["values"]),
                  "[" + std::to_string(i) + ",[5,6,0,12,4,\"cpu\"]]");
    }
}

TEST_F(Tape, WhatIsGivenUpIsNotThere)
{
    begin();
    kpt_tape *tape = ready();
    ASSERT_TRUE(tape->ops->begin(tape));
    put_matrix(tape, 0x1000, 3, 4);
    tape->ops->give_up(tape);
    const uint64_t id = begin_with(tape, "op", 1);
    ASSERT_TRUE(tape->ops->end(tape, id));
    put_matrix(tape, 0x2000, 3, 4);
    tape->ops->give_up(tape);
    end_op(id, {values.string("out")}); /* it is open still */
    const json all = finish();
    EXPECT_EQ(text_of(node_of(all, "op")["outputs"]["values"]), "[\"out\"]");
    EXPECT_EQ(all["nodes"].items.size(), 4U);
    EXPECT_EQ(all["kpytrace"]["damaged"].text, "0");
    expect_tree(all);
}

TEST_F(Tape, WordsBeyondItsBoundsAreNotTaken)
{
    begin();
    kpt_tape *tape = ready();
    for (const ptrdiff_t beyond : {ptrdiff_t{1}, ptrdiff_t{-1000}}) {
        ASSERT_TRUE(tape->ops->begin(tape));
        const uint32_t place = function(tape, "beyond");
        tape->at = (beyond > 0 ? tape->limit : tape->at) + beyond;
        EXPECT_EQ(tape->ops->begun(tape, place, 1, -1, 1), 0U);
    }
    for (const uint32_t place : {0U, 1U, UINT32_MAX}) { /* offset of the function */
        ASSERT_TRUE(tape->ops->begin(tape));
        EXPECT_EQ(tape->ops->begun(tape, place, 1, -1, 0), 0U);
    }
    const uint64_t id = begin_with(tape, "op", 1);
    ASSERT_TRUE(tape->ops->end(tape, id));
    tape->at = tape->limit + 1;
    tape->ops->ended(tape, 1);
    /* Calls without a begin fail, too. */
    EXPECT_EQ(tape->ops->text(tape, kpt_str_of("late")), 0U);
    EXPECT_EQ(function(tape, "late"), 0U);
    EXPECT_EQ(tape->ops->begun(tape, 1, 1, -1, 0), 0U);
    tape->ops->ended(tape, 0);
    const json all = finish();
    EXPECT_EQ(all["nodes"].items.size(), 4U);
    EXPECT_EQ(text_of(node_of(all, "op")["outputs"]["values"]), "[]");
    EXPECT_FALSE(attr_of(node_of(all, "op"), "kpytrace").has("ended_by"));
    EXPECT_EQ(all["kpytrace"]["damaged"].text, "0");
}

/* A host that does not keep its word. */
TEST_F(Tape, NothingIsRecordedInTheMiddleOfAnOperator)
{
    begin();
    kpt_tape *tape = ready();
    const uint64_t outer = begin_with(tape, "outer", 1, [&] {
        EXPECT_FALSE(tape->ops->begin(tape));
        EXPECT_EQ(begin_op(op_of("inner")), 0U);
        put(tape, {head(KPT_VALUE_BOOL), 1});
        return 1U;
    });
    EXPECT_TRUE(end_with(tape, outer, 1));
    EXPECT_EQ(stats().dropped, 1U);
    const json all = finish();
    EXPECT_EQ(text_of(node_of(all, "outer")["inputs"]["values"]), "[1,true]");
    EXPECT_EQ(all["nodes"].items.size(), 4U);
    EXPECT_EQ(all["kpytrace"]["damaged"].text, "0");
}

TEST_F(Tape, IsForWhatIsRecorded)
{
    make();
    kpt_tape *tape = kpti_execution_trace.tape(self);
    EXPECT_FALSE(tape->ops->begin(tape));
    EXPECT_EQ(open("a.json"), KPT_OK);
    EXPECT_FALSE(tape->ops->begin(tape));
    EXPECT_EQ(start(), KPT_OK);
    EXPECT_FALSE(tape->ops->begin(tape)); /* the thread's first one */
    run("first");
    const uint64_t id = begin_with(tape, "open", 1);
    EXPECT_NE(id, 0U);
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_FALSE(tape->ops->begin(tape));
    EXPECT_FALSE(tape->ops->end(tape, id));
    EXPECT_EQ(start(), KPT_OK);
    EXPECT_FALSE(tape->ops->end(tape, id)); /* of an earlier run */
    run("second");
    EXPECT_TRUE(end_with(tape, begin_with(tape, "later", 1), 1));
    const json all = finish("a.json");
    EXPECT_EQ(extra_of(node_of(all, "open"), "ended_by").text, "stop");
    EXPECT_FALSE(attr_of(node_of(all, "later"), "kpytrace").has("ended_by"));
    begin("b.json");
    EXPECT_FALSE(tape->ops->begin(tape));
    run("first");
    EXPECT_TRUE(end_with(tape, begin_with(tape, "op", 1), 1));
    EXPECT_EQ(finish("b.json")["nodes"].items.size(), 4U);
}

TEST_F(Tape, OperatorsMayEndOnAnotherThread)
{
    begin();
    kpt_tape *tape = ready();
    const uint64_t first = begin_with(tape, "one", 1);
    const uint64_t second = begin_with(tape, "other", 2);
    std::thread([&] {
        kpt_tape *others = ready();
        EXPECT_NE(others, tape);
        EXPECT_TRUE(end_with(others, second, 2));
        end_op(first, {values.integer(1)});
    }).join();
    EXPECT_TRUE(end_with(tape, begin_with(tape, "after", 3), 3));
    const json all = finish();
    EXPECT_EQ(text_of(node_of(all, "other")["outputs"]["values"]), "[2]");
    EXPECT_EQ(text_of(node_of(all, "one")["outputs"]["values"]), "[1]");
    expect_tree(all);
}

TEST_F(Tape, HasStacksAndWhatIsWithinACall)
{
    args.flags = KPT_OBSERVER_STACKS;
    gather_stack(2);
    begin();
    kpt_tape *tape = ready();
    const uint64_t alone = begin_with(tape, "alone", 1);
    const uint64_t other = begin_with(tape, "other", 2);
    EXPECT_FALSE(stack_was_known()) << "nobody has promised that it lies within a call";
    EXPECT_TRUE(end_with(tape, other, 2));
    EXPECT_TRUE(end_with(tape, alone, 1));
    flags_of_ops = KPT_OP_IN_ONE_CALL;
    const uint64_t outer = begin_with(tape, "outer", 1);
    EXPECT_FALSE(stack_was_known());
    const uint64_t inner = begin_with(tape, "inner", 2);
    EXPECT_TRUE(stack_was_known());
    EXPECT_TRUE(end_with(tape, inner, 2));
    EXPECT_TRUE(end_with(tape, outer, 1));
    gather_stack(3);
    const uint64_t next = begin_with(tape, "next", 3);
    EXPECT_FALSE(stack_was_known());
    EXPECT_TRUE(end_with(tape, next, 3));
    flags_of_ops = 0;
    const json all = finish();
    EXPECT_EQ(extra_of(node_of(all, "outer"), "stack").text, "0");
    EXPECT_EQ(extra_of(node_of(all, "inner"), "stack").text, "0");
    EXPECT_EQ(extra_of(node_of(all, "next"), "stack").text, "2");
}

TEST_F(Tape, AChildOfAForkHasItsOwn)
{
    begin();
    kpt_tape *tape = ready();
    const uint64_t id = begin_with(tape, "op", 1);
    in_a_child([&] {
        const bool is_refused = !tape->ops->begin(tape) && !tape->ops->end(tape, id);
        const bool has_recorded = record_own("child.json");
        begin("again.json");
        const bool is_still_refused = !tape->ops->begin(tape);
        kpt_tape *own = ready();
        const bool has_written = end_with(own, begin_with(own, "op", 2), 2);
        return is_refused && has_recorded && is_still_refused && own != tape && has_written &&
               finish("again.json")["nodes"].items.size() == 4;
    });
    EXPECT_TRUE(end_with(tape, id, 1));
    expect_tree(finish());
}

TEST_F(Tape, WhereThereIsNoRoomItSaysSo)
{
    uint64_t open[40];
    size_t count = 0;
    begin();
    kpt_tape *tape = ready();
    {
        const Limit limit(200000);
        uint64_t id;
        while ((id = begin_with(tape, "op", 1)) != 0)
            open[count++ % 40] = id;
        EXPECT_GT(count, 40U);
        for (const uint64_t each : open)
            if (!end_with(tape, each, 1)) end_op(each, {values.integer(1)});
        EXPECT_EQ(stop(), KPT_OK);
    }
    const json all = finish();
    EXPECT_EQ(all["kpytrace"]["damaged"].text, "0");
    expect_tree(all);
}

} // namespace
