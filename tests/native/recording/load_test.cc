// load_test.cc: a recording that was written to tables and chunks and loaded again is delivered as the
// original; bytes that are not a recording are refused.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fixtures/mock_host/mock_host.h"
#include "tests/native/recording/kept.h"
#include "tests/native/recording/random_program.h"

namespace
{

TEST(Load, gives_the_same_as_directly)
{
    for (uint32_t seed = 0; seed < 100 && !testing::Test::HasFailure(); seed++) {
        ProgramOptions options;
        options.points = true;
        options.damage = seed % 3 == 0;
        Recording r;
        write_random_program(&r, seed, options);
        r.recording.min_duration_ns = seed % 4 == 1 ? 15 : 0;
        r.tape().begin_span(3, r.tape().now() + 1);
        r.cross_thread_end(3, 400).cross_thread_end(4, 800);
        r.tape(1).track.flags = KPT_THREAD_ENDED;
        Kept kept = keep(r);
        Loaded loaded(kept);
        ASSERT_EQ(KPT_OK, loaded.status) << loaded.error.text;
        EXPECT_EQ(77u, loaded.stats().events) << "as it was counted";
        for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
            Taking taking;
            taking.order = order;
            taking.end_ns = seed % 5 == 2 ? 3000 : 0;
            taking.flags = order == KPT_ORDER_START ? 0 : KPT_DELIVER_POINTS;
            const Taken direct = take(r, taking);
            const Taken again = loaded.take(taking);
            ASSERT_EQ(all_of(direct), all_of(again)) << "seed " << seed << ", order " << order;
            EXPECT_EQ(direct.repairs, loaded.stats().events_repaired);
        }
    }
}

TEST(Load, a_least_duration_of_the_readers_own)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).exit(2, 4).exit(1, 90);
    Kept kept = keep(r);
    EXPECT_EQ("f2[2-4] f1[1-90]", Loaded(kept).take().text());
    EXPECT_EQ("f1[1-90]", Loaded(kept, nullptr, 10).take().text());
    r.recording.min_duration_ns = 50;
    kept = keep(r);
    EXPECT_EQ("f1[1-90]", Loaded(kept).take().text());
    EXPECT_EQ("f2[2-4] f1[1-90]", Loaded(kept, nullptr, 1).take().text());
}

TEST(Load, after_a_crash_calls_end_with_the_last_chunk)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2);
    r.stop(0);
    Kept kept = keep(r, false);
    kept.chunks.back().last_ticks = 50;
    Loaded loaded(kept);
    ASSERT_EQ(KPT_OK, loaded.status);
    EXPECT_EQ("f2[2-50]S f1[1-50]S", loaded.take().text());
    EXPECT_EQ(2u, loaded.stats().events) << "counted from what is there";
    EXPECT_EQ(1u, loaded.stats().threads);
}

// The counters of the first run were delivered; those of the second run never are.
TEST(Load, after_a_crash_in_the_second_run)
{
    Recording r;
    r.stop(100).add_run(200, 0);
    r.tape().enter(1, 1).exit(1, 2);
    r.tape().run(1, 200).enter(2, 210).begin_span(7, 220).enter(4, 230).end_span(7, 240).exit(4,
                                                                                              250);
    r.tape().track.spans = 0; // as it was written, before there were spans
    Kept first = keep(r);
    kpti_metadata table{};
    const kpti_env env{};
    const kpti_run second = {200, 0};
    table.env = &env;
    kpti_metadata_add_run(&table, 1, &second);
    first.add_table(table);
    kpti_metadata_free(&table);
    first.chunks.back().last_ticks = 300;
    first.chunks[1].last_ticks = 300;
    Loaded loaded(first);
    ASSERT_EQ(KPT_OK, loaded.status) << loaded.error.text;
    EXPECT_EQ("f1[1-2] f4[230-240]C f2[210-300]S", loaded.take().text()) << "spans are looked for";
    EXPECT_EQ(7u, loaded.stats().events);
}

TEST(Load, nothing_at_all_is_a_recording)
{
    Kept nothing;
    Loaded loaded(nothing);
    ASSERT_EQ(KPT_OK, loaded.status);
    EXPECT_EQ("", loaded.take().text());
    nothing.answer = KPT_E_IO;
    EXPECT_EQ(KPT_E_IO, Loaded(nothing).status) << "what next answers is the answer";
}

TEST(Load, what_makes_no_sense_is_refused)
{
    const uint64_t max = UINT32_MAX;
    const std::vector<std::vector<uint64_t>> tables = {
        {KPTI_METADATA_RUN | UINT64_C(16) << 32, 0, 0},                                // too short
        {KPTI_METADATA_RUN | UINT64_C(24) << 32, max, 0, 0},                           // too many
        {KPTI_METADATA_CLOCK | UINT64_C(32) << 32, 0, 0, 0, 0},                        // too short
        {KPTI_METADATA_CLOCK | UINT64_C(40) << 32, 0, UINT64_C(1) << 63, 0, 0, 0},     // no time
        {KPTI_METADATA_THREAD | UINT64_C(32) << 32, max, 0, 0, 0},                     // too many
        {KPTI_METADATA_THREAD | UINT64_C(32) << 32, 0, 9 * (UINT64_C(1) << 32), 0, 0}, // no name
        {KPTI_METADATA_NAMES | UINT64_C(8) << 32, 1},                 // some are missing
        {KPTI_METADATA_NAMES | UINT64_C(8) << 32, UINT64_C(1) << 32}, // counted, not there
        {KPTI_METADATA_NAMES | UINT64_C(32) << 32, UINT64_C(1) << 32, 1, max, 0}, // a long text
        {KPTI_METADATA_NAMES | UINT64_C(32) << 32, UINT64_C(1) << 32, 9, 0, 0},   // an unknown kind
        {KPTI_METADATA_STATS | UINT64_C(8) << 32, 0},                             // too short
        {KPTI_METADATA_CROSS_THREAD_ENDS | UINT64_C(32) << 32, 5, 0, 4, 0},       // not in order
        {99 | UINT64_C(16) << 32, 0},                                             // cut off
        {99 | UINT64_C(7) << 32, 0},                                              // an odd size
    };
    for (const auto &words : tables) {
        Kept kept;
        kept.add_words(words);
        const Loaded loaded(kept);
        EXPECT_EQ(KPT_E_INVALID, loaded.status) << "table " << &words - tables.data();
        EXPECT_NE(std::string(loaded.error.text).find("damaged"), std::string::npos);
    }
    Kept timeless;
    timeless.add_words({0}, 0);
    EXPECT_EQ(KPT_E_INVALID, Loaded(timeless).status) << "nothing says what time it was";
    Kept passed_over;
    passed_over.add_words({99 | UINT64_C(8) << 32, 0});
    EXPECT_EQ(KPT_OK, Loaded(passed_over).status) << "sections that are not known are fine";
}

TEST(Load, chunks_that_are_not_ours_are_refused)
{
    Recording r;
    r.tape().enter(1, 1).exit(1, 2);
    Kept kept = keep(r);
    kept.chunks[1].format = 8; // 4 to 7 are packed
    EXPECT_EQ(KPT_E_UNSUPPORTED, Loaded(kept).status);
    kept = keep(r);
    kept.chunks[1].data = static_cast<const char *>(kept.chunks[1].data) + 1;
    EXPECT_EQ(KPT_E_INVALID, Loaded(kept).status) << "not aligned";
    kept = keep(r);
    kept.chunks[1].data = nullptr;
    EXPECT_EQ(KPT_E_INVALID, Loaded(kept).status);
    kept = keep(r);
    kept.chunks[1].thread = KPT_CHUNK_TABLE - 1;
    EXPECT_EQ(KPT_E_INVALID, Loaded(kept).status) << "far too many threads";
}

// Numbers as the recorder assigns them, without an upper bound. Memory depends on the number of threads,
// not on their numbers.
TEST(Load, issue_23_threads_beyond_four_million)
{
    const uint32_t beyond = (1 << 22) + 5;
    Recording r;
    r.tape(0).enter(1, 1).exit(1, 2);
    r.tape(1).enter(2, 3).exit(2, 4);
    r.tape(2).enter(4, 5).exit(4, 6);
    Kept kept = keep(r);
    kept.chunks[2].thread = beyond;
    kept.chunks[3].thread = beyond - 2;
    mock_host host;
    mock_host_init(&host, "load_test");
    kpti_env env{};
    env.host = host.table;
    Loaded loaded(kept, &env);
    ASSERT_EQ(KPT_OK, loaded.status) << loaded.error.text;
    EXPECT_LT(host.live_bytes, 1u << 20);
    EXPECT_EQ("f1[1-2] f4[5-6] f2[3-4]", loaded.take().text()) << "by number";
}

TEST(Load, many_threads_in_any_order)
{
    enum { THREADS = 5000 };
    Recording r;
    for (uint32_t t = 0; t < THREADS; t++)
        r.tape(t).enter(1, t + 1).exit(1, t + 2);
    const Taken direct = take(r, {});
    Kept kept = keep(r);
    std::reverse(kept.chunks.begin() + 1, kept.chunks.end());
    Loaded loaded(kept);
    ASSERT_EQ(KPT_OK, loaded.status) << loaded.error.text;
    EXPECT_EQ(all_of(direct), all_of(loaded.take()));
}

TEST(Load, chunks_are_handed_on)
{
    Recording r;
    write_random_program(&r, 3, {});
    Kept kept = keep(r);
    Loaded loaded(kept);
    kpti_error error{};
    for (const bool whole : {true, false}) {
        Kept copy;
        const kpt_chunk_sink sink = {sizeof sink, uint32_t{whole}, 0,
                                     [](void *ctx, const kpt_chunk *chunk) {
                                         static_cast<Kept *>(ctx)->add(*chunk);
                                         return kpt_status{KPT_OK};
                                     },
                                     &copy};
        ASSERT_EQ(KPT_OK, kpti_loaded_tracer.get_chunks(loaded.self, &sink, &error));
        EXPECT_EQ(kept.chunks.size() - (whole ? 0 : 1), copy.chunks.size());
        if (whole) {
            EXPECT_EQ(all_of(loaded.take()), all_of(Loaded(copy).take()));
        }
    }
    EXPECT_EQ(KPT_E_INVALID, kpti_loaded_tracer.get_chunks(loaded.self, nullptr, &error));
}

TEST(Load, fails_at_each_allocation)
{
    Recording r;
    write_random_program(&r, 7, {});
    r.cross_thread_end(1, 10);
    Kept kept = keep(r);
    /* two blocks of threads, and of the index of chunks */
    for (uint32_t i = 0; i < 4 * KPTI_THREADS_IN_BLOCK; i++)
        kept.add_words({0}, i % (KPTI_THREADS_IN_BLOCK + 1));
    mock_host host;
    mock_host_init(&host, "load_test");
    kpti_env env{};
    env.host = host.table;
    uint64_t n = 0;
    kpt_status status = KPT_E_MEMORY;
    while (status == KPT_E_MEMORY) {
        host.alloc_calls = 0;
        host.fail_alloc_at = ++n;
        const Loaded loaded(kept, &env);
        status = loaded.status;
        ASSERT_TRUE(status == KPT_OK || host.live_blocks == 0) << "a leak at " << n;
        ASSERT_TRUE(status == KPT_OK || loaded.error.text[0]);
    }
    EXPECT_EQ(KPT_OK, status);
    EXPECT_GT(n, 15u);
    EXPECT_EQ(0u, host.live_blocks);
    EXPECT_EQ(0u, host.bad_frees);
}

} // namespace
