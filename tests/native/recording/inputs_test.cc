// inputs_test.cc: the inputs of the host's operators and ranges, in deliveries.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fixtures/mock_host/mock_host.h"
#include "tests/native/recording/delivered.h"

extern "C" {
#include "core/recording/open_at_end.h"
#include "core/recording/operator_event.h"
}

namespace
{

enum { OPERATOR = 50 };

int describe_inputs(void *, uint32_t id, kpti_function_view *out)
{
    memset(out, 0, sizeof *out);
    out->kind = id == OPERATOR ? KPT_KIND_OPERATOR : KPT_KIND_PYTHON;
    out->first_line = 10 * id;
    return 1;
}

// Writes the TEXT events of BYTES.
void put_texts(Tape &tape, const std::string &bytes)
{
    for (size_t i = 0; i < bytes.size(); i += KPTI_TEXT_BYTES)
        tape.word(kpti_text_make(bytes.data() + i, bytes.size() - i));
}

void put_operator(Tape &tape, const std::string &inputs, uint64_t ticks)
{
    tape.enter(OPERATOR, ticks);
    tape.word(kpti_inputs_make(kpti_text_events(inputs.size()), 0));
    put_texts(tape, inputs);
}

class Inputs : public testing::Test
{
  protected:
    Inputs()
    {
        r.recording.describe = describe_inputs;
    }
    Taken taken(uint32_t order, uint32_t flags = KPT_DELIVER_INPUTS)
    {
        Taking taking;
        taking.order = order;
        taking.flags = flags;
        taking.batch_size = 3;
        return take(r, taking);
    }
    // The inputs of each activity that is not a begin, "-" if it has none.
    static std::vector<std::string> texts(const Taken &t)
    {
        std::vector<std::string> out;
        for (const kpt_activity &a : t.activities)
            if (a.phase != KPT_PHASE_BEGIN)
                out.push_back(a.kind == KPT_KIND_OPERATOR && a.line ? t.inputs.at(a.line) : "-");
        return out;
    }

    Recording r;
};

TEST_F(Inputs, OfOperatorsAreDeliveredInEachOrder)
{
    const std::string large(KPT_INPUTS_MOST_BYTES, 'x');
    put_operator(r.tape(), "first", 10);
    r.tape().exit(OPERATOR, 20).enter(OPERATOR, 30).exit(OPERATOR, 40).enter(OPERATOR, 50);
    r.tape().word(kpti_inputs_make(1, 5)); // refers to those of the first
    r.tape().exit(OPERATOR, 60);
    put_operator(r.tape(), large, 70);
    r.tape().exit(OPERATOR, 80).enter(1, 90).exit(1, 100);
    put_operator(r.tape(1), "first", 300);
    r.tape(1).exit(OPERATOR, 310);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        const Taken t = taken(order);
        const std::vector<std::string> expected = {"first", "-", "first", large, "-", "first"};
        EXPECT_TRUE(texts(t) == expected); // without printing them
        EXPECT_EQ(2u, t.inputs.size());
        EXPECT_EQ(0u, t.repairs);
        EXPECT_TRUE(t.wrong.empty());
    }
    EXPECT_EQ(taken(KPT_ORDER_THREAD, 0).inputs.size(), 0u);
}

// Counts and distances that lead out of the chunk, or are too large.
TEST_F(Inputs, ThatAreElsewhereAreLeftOut)
{
    for (const auto &[count, distance] :
         std::vector<std::pair<uint32_t, uint32_t>>{{1, 0},
                                                    {1, 3},
                                                    {2, 1},
                                                    {0, 0},
                                                    {0, 1},
                                                    {KPTI_MAX_NUMBER, 0},
                                                    {KPTI_MAX_NUMBER, 1},
                                                    {1, UINT32_MAX},
                                                    {KPTI_MAX_INPUT_EVENTS + 1, 0}}) {
        Recording damaged;
        damaged.recording.describe = describe_inputs;
        damaged.tape().enter(1, 5).enter(OPERATOR, 10).word(kpti_inputs_make(count, distance));
        Taking taking;
        taking.flags = KPT_DELIVER_INPUTS;
        const Taken t = take(damaged, taking);
        EXPECT_EQ(2u, t.activities.size()) << count << " " << distance;
        EXPECT_TRUE(t.inputs.empty() || distance == 1) << count << " " << distance;
    }
}

// The same behind the name of a range, which keeps its name.
TEST_F(Inputs, OfRangesThatAreElsewhereAreLeftOut)
{
    for (const auto &[count, distance] : std::vector<std::pair<uint32_t, uint32_t>>{
             {5, 0}, {1, 9}, {0, 0}, {KPTI_MAX_NUMBER, 1}, {1, UINT32_MAX}}) {
        Recording damaged;
        damaged.tape().enter(1, 5).begin_span(7, 10);
        put_texts(damaged.tape(), "a range");
        damaged.tape().word(kpti_inputs_make(count, distance));
        if (!distance) put_texts(damaged.tape(), "no name");
        damaged.tape().end_span(7, 20).exit(1, 30);
        damaged.tape().track.spans = 1;
        for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
            Taking taking;
            taking.order = order;
            taking.flags = KPT_DELIVER_INPUTS | KPT_DELIVER_RANGES;
            const Taken t = take(damaged, taking);
            const auto begin =
                std::find_if(t.activities.begin(), t.activities.end(),
                             [](const auto &a) { return a.kind == KPT_KIND_RANGE_BEGIN; });
            ASSERT_NE(t.activities.end(), begin);
            EXPECT_EQ(0u, begin->line) << count << " " << distance;
            EXPECT_EQ(7u, t.names.at(begin->name).function.size);
            EXPECT_TRUE(t.inputs.empty());
        }
    }
}

TEST_F(Inputs, OfAnOpenOperatorGoWithIt)
{
    kpti_open_at_end found{};
    Tape &tape = r.tape();
    put_operator(tape, "0123456789", 10);
    tape.exit(OPERATOR, 20).enter(OPERATOR, 30).word(kpti_inputs_make(2, 4));
    put_operator(tape, "own", 40);
    const kpti_chunk *chunk = tape.chunks();
    ASSERT_TRUE(kpti_open_at_end_find(&found, chunk->events, chunk->count));
    Recording next;
    next.recording.describe = describe_inputs;
    next.tape().gap(100);
    for (uint64_t i = 0; i < found.count; i++)
        next.tape().word(found.events[i]);
    kpti_open_at_end_free(&found);
    Taking taking;
    taking.flags = KPT_DELIVER_INPUTS;
    const Taken t = take(next, taking);
    EXPECT_EQ(texts(t), (std::vector<std::string>{"own", "0123456789"}));
}

TEST_F(Inputs, EveryAllocationMayFail)
{
    mock_host host;
    kpti_env env{};
    mock_host_init(&host, "inputs_test");
    env.host = host.table;
    for (uint64_t i = 0; i < 100; i++) {
        put_operator(r.tape(), "inputs of operator " + std::to_string(i), 10 * i);
        r.tape().exit(OPERATOR, 10 * i + 5);
    }
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        taking.flags = KPT_DELIVER_INPUTS;
        taking.env = &env;
        kpt_status status = KPT_E_MEMORY;
        uint64_t n = 0;
        while (status == KPT_E_MEMORY) {
            host.alloc_calls = 0;
            host.fail_alloc_at = ++n;
            status = take(r, taking).status;
            ASSERT_EQ(0u, host.live_blocks) << "a leak, when allocation " << n << " failed";
            ASSERT_EQ(0u, host.bad_frees) << "freed with another size, at " << n;
        }
        EXPECT_EQ(KPT_OK, status);
        EXPECT_GT(n, 100u);
    }
}

} // namespace
