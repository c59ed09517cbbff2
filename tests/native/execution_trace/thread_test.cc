/* thread_test.cc: many threads, backward operators, ends on other threads, and stops among them all. */
#include <atomic>
#include <fstream>
#include <thread>

#include "tests/native/execution_trace/observing.h"

namespace
{

class Thread : public Observing
{
  protected:
    /* Runs WHAT on a new thread. */
    template <class Function> static void on_thread(Function what)
    {
        std::thread(what).join();
    }
    static kpt_op on(const char *name, uint64_t thread)
    {
        kpt_op op = op_of(name);
        op.thread = thread;
        return op;
    }
};

TEST_F(Thread, EachHasANode)
{
    begin();
    run("main");
    on_thread([this] { end_op(begin_op(on("other", 2))); });
    on_thread([this] { end_op(begin_op(on("third", 3))); });
    const json t = finish();
    expect_tree(t);
    ASSERT_EQ(t["nodes"].items.size(), 7U);
    EXPECT_EQ(node_of(t, "main")["ctrl_deps"].text, "2");
    EXPECT_EQ(node_of(t, "other")["ctrl_deps"].text, "4");
    EXPECT_EQ(node_of(t, "third")["ctrl_deps"].text, "6");
    EXPECT_NE(extra_of(node_of(t, "other"), "os_tid").text,
              extra_of(node_of(t, "main"), "os_tid").text);
}

TEST_F(Thread, ABackwardOperatorKnowsWhereItsForwardThreadIs)
{
    begin();
    const uint64_t a = begin_op(on("step", 1));
    on_thread([this] {
        kpt_op op = on("backward", 2);
        op.scope = 1;
        op.forward_thread = 1;
        end_op(begin_op(op));
    });
    end_op(a);
    on_thread([this] {
        kpt_op op = on("later", 3);
        op.forward_thread = 1;
        end_op(begin_op(op));
    });
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(attr_of(node_of(t, "backward"), "fw_parent").text, node_of(t, "step")["id"].text);
    EXPECT_EQ(attr_of(node_of(t, "backward"), "fw_tid").text, "1");
    EXPECT_EQ(attr_of(node_of(t, "later"), "fw_parent").text, "2");
}

TEST_F(Thread, AnOperatorMayEndOnAnotherOne)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    on_thread([this, a] { end_op(a, {values.integer(5)}); });
    run("b");
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(text_of(node_of(t, "a")["outputs"]["values"]), "[5]");
    EXPECT_EQ(node_of(t, "b")["ctrl_deps"].text, "2");
}

TEST_F(Thread, TheSameTensorIsTheSameEverywhere)
{
    const kpt_value u = values.of(values.tensor(0x1000, {2}));
    begin();
    run("a", {}, {u});
    on_thread([this, u] { end_op(begin_op(on("b", 2), {u})); });
    const json t = finish();
    EXPECT_EQ(text_of(node_of(t, "a")["outputs"]["values"]),
              text_of(node_of(t, "b")["inputs"]["values"]));
}

TEST_F(Thread, ManyAtOnceWhileRecordingStopsAndStarts)
{
    const int threads = 3;
    std::atomic<bool> is_over{false};
    std::atomic<uint64_t> recorded{0};
    std::vector<std::thread> all;
    begin();
    for (int i = 0; i < threads; i++) {
        all.emplace_back([this, i, &is_over, &recorded] {
            Values own;
            const kpt_value u = own.of(own.tensor(0x1000, {2}));
            while (!is_over) {
                const uint64_t a = begin_op(on("a", static_cast<uint64_t>(i) + 1), {u});
                const uint64_t b = begin_op(on("b", static_cast<uint64_t>(i) + 1), {u, u});
                recorded += (a != 0) + (b != 0);
                end_op(b, {u});
                end_op(a);
            }
        });
    }
    for (int round = 0; round < 10; round++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(stop(), KPT_OK);
        EXPECT_EQ(start(), KPT_OK);
    }
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(close(), KPT_OK) << error; /* while other threads still record */
    EXPECT_EQ(open("second.json"), KPT_OK);
    EXPECT_EQ(start(), KPT_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    is_over = true;
    for (std::thread &thread : all)
        thread.join();
    const json second = finish("second.json");
    const json first = read();
    expect_tree(first);
    expect_tree(second);
    uint64_t nodes = 0;
    for (const json *t : {&first, &second})
        for (const json &node : (*t)["nodes"].items)
            nodes += node["name"].text.size() == 1;
    EXPECT_EQ(nodes, recorded);
}

TEST_F(Thread, ThreadsMayEndWhileTheirOperatorsAreOpen)
{
    begin();
    for (int i = 0; i < 50; i++)
        on_thread([this] { (void)begin_op(on("left", 2)); });
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(t["nodes"].items.size(), 101U);
}

/* How often FILE is mapped. */
size_t mappings_of(const std::string &file)
{
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find(file) != std::string::npos;
    return count;
}

/* Otherwise a program that starts a thread for each request would soon run out of mappings or memory. */
TEST_F(Thread, ThoseThatHaveEndedLeaveNothingBehind)
{
    const uint64_t threads = 300;
    begin();
    for (int file = 0; file < 2; file++) {
        for (uint64_t i = 0; i < threads; i++)
            on_thread([this, i] { end_op(begin_op(on("request", i + 1))); });
        EXPECT_LT(mappings_of("t.json.journal"), threads / 2);
        EXPECT_EQ(stats().ops, threads);
        const json t = finish();
        expect_tree(t);
        EXPECT_EQ(t["nodes"].items.size(), 2 * threads + 1);
        EXPECT_EQ(t["kpytrace"]["dropped_ops"].text, "0");
        begin();
    }
}

/* The child of a fork records nothing, does not touch the parent's files, and may record its own. */
TEST_F(Thread, AChildOfAForkHasNothing)
{
    begin();
    const uint64_t a = begin_op(op_of("a"));
    in_a_child([this, a] {
        const bool is_none = begin_op(op_of("child")) == 0;
        end_op(a);
        return is_none && record_own("child.json");
    });
    EXPECT_TRUE(exists("t.json.journal"));
    end_op(a);
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(t["nodes"].items.size(), 3U);
    expect_tree(read("child.json"));
    EXPECT_EQ(node_of(read("child.json"), "own")["ctrl_deps"].text, "2");
    EXPECT_EQ(files(), 2U);
}

} // namespace
