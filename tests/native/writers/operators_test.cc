/* operators_test.cc: the host's operators and ranges, added up. */
#include "writers/operators/operator_table.h"

#include <gtest/gtest.h>

#include "tests/fixtures/batches/batches.h"
#include "tests/fixtures/failing_heap.h"

namespace
{

class Operators : public testing::Test
{
  protected:
    ~Operators() override
    {
        kpti_operator_table_free(table);
    }
    void take(tape &t, uint32_t flags = 0)
    {
        parcel delivered = t.delivery(KPT_ORDER_TIME);
        kpti_operator_table_free(table);
        ASSERT_EQ(kpti_operator_table_open(&heap, flags, &table), KPT_OK);
        ASSERT_EQ(kpti_operator_table_batch(table, delivered.batch()), KPT_OK);
    }
    std::string name(uint32_t index)
    {
        const kpt_str text = kpti_operator_table_name(table, index);
        return {text.data, text.size};
    }
    /* Rows by the name and the caller. */
    std::map<std::string, kpti_operator_row> rows()
    {
        static const char *const callers[] = {"", " in ", " for ", " for unknown"};
        std::map<std::string, kpti_operator_row> all;
        uint32_t count;
        const kpti_operator_row *row = kpti_operator_table_rows(table, &count);
        for (uint32_t i = 0; i < count; i++, row++) {
            std::string key = name(row->name) + callers[row->caller];
            if (row->function) key += name(row->function);
            EXPECT_TRUE(all.emplace(key, *row).second) << key;
        }
        return all;
    }

    kpti_heap heap = {};
    kpti_operator_table *table = nullptr;
};

TEST_F(Operators, AddUp)
{
    tape t;
    uint32_t main = t.thread("Main");
    t.name("unused");
    uint32_t f = t.name("f"), add = t.name("add"), mul = t.name("mul"), step = t.name("step");
    t.begin_range(main, step, 1, 0);
    t.enter_operator(main, add, 100);
    t.enter(main, f, 150);
    t.enter_operator(main, mul, 200);
    t.leave(main, 300);
    t.enter_operator(main, add, 300); /* inside itself */
    t.leave(main, 350);
    t.leave(main, 400);
    t.leave(main, 500);
    t.end_range(main, 1, 1000);
    take(t);
    const auto all = rows();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all.at("add").calls, 2u);
    EXPECT_EQ(all.at("add").own_ns, 400u - 150u + 50u);
    EXPECT_EQ(all.at("add").total_ns, 400u);
    EXPECT_EQ(all.at("add").max_ns, 400u);
    EXPECT_EQ(all.at("mul").own_ns, 100u);
    EXPECT_EQ(all.at("step").own_ns, 600u);
    EXPECT_EQ(all.at("step").kind, static_cast<uint32_t>(KPT_KIND_RANGE_BEGIN));
}

TEST_F(Operators, HaveTheFunctionThatCalledThem)
{
    tape t;
    uint32_t main = t.thread("Main"), engine = t.thread("autograd");
    t.name("unused");
    uint32_t f = t.name("f"), g = t.name("g"), c = t.name("<built-in>"), op = t.name("op"),
             node = t.name("node"), inner = t.name("inner");
    t.enter_operator(main, op, 0);
    t.leave(main, 10);
    t.enter(main, f, 20);
    t.enter(main, c, 25).kind = KPT_KIND_C;
    t.enter_operator(main, op, 30, 5);
    t.leave(main, 40);
    t.leave(main, 45);
    t.enter(main, g, 50);
    t.enter_operator(main, op, 60, 6);
    t.leave(main, 70);
    t.leave(main, 80);
    t.enter_operator(main, op, 90, 6); /* later than the one in g: the node belongs to it */
    t.leave(main, 95);
    t.leave(main, 99);
    for (uint64_t sequence : {6, 5, 4}) {
        t.enter_operator(engine, node, static_cast<int64_t>(200 - 10 * sequence), sequence,
                         tape::host_number(main));
        t.enter_operator(engine, inner, static_cast<int64_t>(201 - 10 * sequence));
        t.leave(engine, static_cast<int64_t>(202 - 10 * sequence));
        t.leave(engine, static_cast<int64_t>(203 - 10 * sequence));
    }
    take(t, KPTI_OPERATORS_BY_FUNCTION);
    std::map<std::string, uint64_t> calls;
    for (const auto &row : rows())
        calls[row.first] = row.second.calls;
    EXPECT_EQ(calls, (std::map<std::string, uint64_t>{{"op", 1},
                                                      {"op in f", 2},
                                                      {"op in g", 1},
                                                      {"node for f", 2},
                                                      {"inner for f", 2},
                                                      {"node for unknown", 1},
                                                      {"inner for unknown", 1}}));
}

TEST_F(Operators, HaveTheUsersOwnFunctionIfThereIsOne)
{
    tape t;
    uint32_t main = t.thread("Main");
    t.name("unused");
    uint32_t own = t.name("own", "/home/train.py"),
             theirs = t.name("theirs", "/usr/lib/python3.12/site-packages/torch/nn.py"),
             inner = t.name("inner", "/usr/lib/python3.12/functools.py"), op = t.name("op");
    for (bool has_own : {true, false}) {
        const int64_t ns = has_own ? 0 : 100;
        if (has_own) t.enter(main, own, ns);
        t.enter(main, theirs, ns + 1);
        t.enter(main, inner, ns + 2);
        t.enter_operator(main, op, ns + 3);
        for (int i = 0; i < (has_own ? 4 : 3); i++)
            t.leave(main, ns + 4 + i);
    }
    take(t, KPTI_OPERATORS_BY_FUNCTION);
    EXPECT_EQ(rows().size(), 2u);
    EXPECT_EQ(rows().count("op in own"), 1u);
    EXPECT_EQ(rows().count("op in inner"), 1u);
}

TEST_F(Operators, OfRandomProgramsAddUp)
{
    for (uint32_t seed = 1; seed <= 40; seed++) {
        tape t = tape::random(seed, 1 + seed % 3, 300);
        std::map<uint64_t, const kpt_activity *> by_id;
        std::map<std::string, kpti_operator_row> expected;
        for (kpt_activity &a : t.calls)
            a.kind = a.name % 2 ? KPT_KIND_OPERATOR : KPT_KIND_PYTHON;
        take(t); /* numbers the calls */
        for (const kpt_activity &a : t.calls)
            by_id[a.id] = &a;
        for (const kpt_activity &a : t.calls) {
            if (a.kind != KPT_KIND_OPERATOR) continue;
            const auto ns = static_cast<uint64_t>(a.end_ns - a.start_ns);
            kpti_operator_row &row = expected[name(a.name)];
            bool is_inside = false, has_outer = false;
            row.calls++;
            row.own_ns += ns;
            row.max_ns = std::max(row.max_ns, ns);
            for (uint64_t id = a.parent_id; id; id = by_id[id]->parent_id) {
                if (by_id[id]->kind != KPT_KIND_OPERATOR) continue;
                is_inside = is_inside || by_id[id]->name == a.name;
                if (!has_outer) expected[name(by_id[id]->name)].own_ns -= ns;
                has_outer = true;
            }
            row.total_ns += is_inside ? 0 : ns;
        }
        const auto all = rows();
        ASSERT_EQ(all.size(), expected.size());
        for (const auto &row : all) {
            EXPECT_EQ(row.second.calls, expected[row.first].calls) << row.first;
            EXPECT_EQ(row.second.own_ns, expected[row.first].own_ns) << row.first;
            EXPECT_EQ(row.second.total_ns, expected[row.first].total_ns) << row.first;
            EXPECT_EQ(row.second.max_ns, expected[row.first].max_ns) << row.first;
        }
    }
}

TEST_F(Operators, HaveRowsByThreadAndStep)
{
    const kpti_profile_step steps[] = {{0, 1000}, {1000, 2000}};
    tape t;
    t.name("unused");
    uint32_t op = t.name("op"), main = t.thread("Main"), other = t.thread("Other");
    for (int64_t ns : {100, 200, 1500, 5000}) {
        t.enter_operator(main, op, ns);
        t.leave(main, ns + 10 + ns / 100);
    }
    t.enter_operator(other, op, 900); /* counts where it began */
    t.leave(other, 1900);
    parcel delivered = t.delivery(KPT_ORDER_TIME);
    ASSERT_EQ(kpti_operator_table_open(&heap, KPTI_OPERATORS_BY_THREAD, &table), KPT_OK);
    kpti_operator_table_by_step(table, steps, 2);
    ASSERT_EQ(kpti_operator_table_batch(table, delivered.batch()), KPT_OK);
    std::map<std::string, std::vector<uint64_t>> found;
    uint32_t count;
    const kpti_operator_row *row = kpti_operator_table_rows(table, &count);
    for (uint32_t i = 0; i < count; i++, row++) {
        const kpt_str thread = kpti_operator_table_thread(table, row->thread);
        found[std::string(thread.data, thread.size) + std::to_string(row->step)] = {
            row->calls, row->total_ns, row->min_ns, row->max_ns};
    }
    EXPECT_EQ(found,
              (std::map<std::string, std::vector<uint64_t>>{{"Main1", {2, 23, 11, 12}},
                                                            {"Main2", {1, 25, 25, 25}},
                                                            {"Main0", {1, 60, 60, 60}},
                                                            {"Other1", {1, 1000, 1000, 1000}}}));
}

TEST_F(Operators, OfNonsenseDoNoHarm)
{
    parcel p;
    p.order = KPT_ORDER_TIME;
    for (uint16_t kind :
         {KPT_KIND_OPERATOR, KPT_KIND_RANGE_END, KPT_KIND_PYTHON, KPT_KIND_RANGE_BEGIN})
        for (uint16_t phase : {KPT_PHASE_END, KPT_PHASE_COMPLETE, KPT_PHASE_BEGIN}) {
            kpt_activity a = parcel::plain(5, 9, 100, -100);
            a.kind = kind;
            a.phase = phase;
            a.value0 = a.value1 = UINT64_MAX;
            a.name = 3;
            a.thread = 7;
            p.call(a);
        }
    ASSERT_EQ(kpti_operator_table_open(&heap, KPTI_OPERATORS_BY_FUNCTION, &table), KPT_OK);
    EXPECT_EQ(kpti_operator_table_batch(table, p.batch()), KPT_OK);
    p.order = KPT_ORDER_THREAD;
    EXPECT_EQ(kpti_operator_table_batch(table, p.batch()), KPT_E_UNSUPPORTED);
    parcel far;
    far.order = KPT_ORDER_TIME;
    kpt_activity a = parcel::plain(1, 0, 0, 0);
    a.thread = UINT32_MAX;
    a.phase = KPT_PHASE_BEGIN;
    far.call(a);
    EXPECT_EQ(kpti_operator_table_batch(table, far.batch()), KPT_E_LIMIT);
}

TEST_F(Operators, EveryAllocationMayFail)
{
    tape t = tape::random(3, 2, 100);
    for (kpt_activity &a : t.calls) {
        if (a.name % 2) a.kind = KPT_KIND_OPERATOR;
        if (a.kind == KPT_KIND_OPERATOR) a.value0 = 1 + a.name / 4;
        if (a.name % 4 == 3) a.value1 = tape::host_number(0);
    }
    parcel delivered = t.delivery(KPT_ORDER_TIME);
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &failing) {
        kpti_operator_table *made = nullptr;
        kpt_status status = kpti_operator_table_open(&failing, KPTI_OPERATORS_BY_FUNCTION, &made);
        if (status == KPT_OK) status = kpti_operator_table_batch(made, delivered.batch());
        kpti_operator_table_free(made);
        return status;
    });
    EXPECT_GE(failures, 7U);
}

} // namespace
