// pack_test.cc: packed chunks. Any words come back; events become small; a recording of packed chunks is delivered as the
// original; damaged bytes give fewer or other words, and no read or write outside.
#include <memory>
#include <random>

#include "tests/fixtures/mock_host/mock_host.h"
#include "tests/native/recording/kept.h"
#include "tests/native/recording/random_program.h"

extern "C" {
#include "core/base/packed_words.h"
#include "core/recording/operator_event.h"
}

namespace
{

using Words = std::vector<uint64_t>;
using Bytes = std::vector<char>;

Bytes pack(const Words &words)
{
    auto packer = std::make_unique<kpti_packer>();
    Bytes out(kpti_packed_bound(static_cast<uint32_t>(words.size())));
    out.resize(kpti_pack_words(packer.get(), words.data(), static_cast<uint32_t>(words.size()),
                               out.data()));
    out.shrink_to_fit(); // so that AddressSanitizer detects a read behind it
    return out;
}

// Returns the words that are restored, in memory that ends with them.
Words unpack(const Bytes &bytes)
{
    const uint32_t count = kpti_packed_count(bytes.data(), bytes.size());
    Words words(count, 0);
    EXPECT_LE(count, bytes.size());
    words.resize(kpti_unpack_words(bytes.data(), bytes.size(), words.data(), count));
    uint64_t first;
    const int has_first = kpti_unpack_first_word(bytes.data(), bytes.size(), &first);
    EXPECT_TRUE(words.empty() || (has_first && first == words[0]));
    return words;
}

// A program that calls the same functions again and again, with ticks that are multiples of STEP.
Words program(std::mt19937 &random, uint32_t count, uint32_t step)
{
    Words words;
    Words open;
    uint64_t ticks = random();
    while (words.size() < count) {
        const bool calls = open.size() < 3 || (open.size() < 50 && random() % 2);
        ticks += step * (20 + random() % 200);
        if (calls) open.push_back(open.size() * 3 % 40);
        words.push_back(kpti_event_make(calls ? KPTI_EVENT_ENTER : KPTI_EVENT_EXIT,
                                        static_cast<uint32_t>(open.back()), ticks));
        if (!calls) open.pop_back();
    }
    return words;
}

// Every kind of event, with every second word.
Words all_kinds(std::mt19937 &random)
{
    Words words;
    for (uint32_t i = 0; i < 500; i++) {
        const auto kind = static_cast<uint32_t>(random() % 16);
        words.push_back(kpti_event_make(
            kind, static_cast<uint32_t>(random() % (i % 2 ? 5 : KPTI_MAX_NUMBER)), random()));
        if (kpti_event_is_long(kind))
            words.push_back(static_cast<uint64_t>(random()) << 32 | random());
    }
    words.push_back(kpti_text_make("a name", 6));
    words.push_back(kpti_inputs_make(3, 0));
    words.push_back(kpti_operator_make({UINT32_MAX, KPTI_OPERATOR_ASYNC, 3, 9}));
    return words;
}

TEST(Pack, any_words_come_back)
{
    std::mt19937 random(1);
    EXPECT_EQ(Words{}, unpack(pack({})));
    for (uint32_t i = 1; i < 300; i++) {
        Words words(i);
        const auto bits = static_cast<uint32_t>(random() % 65);
        for (uint64_t &word : words)
            word = bits ? (static_cast<uint64_t>(random()) << 32 | random()) >> (64 - bits) : 0;
        if (i % 3 == 0) words.insert(words.end(), words.begin(), words.end()); // a long repetition
        ASSERT_EQ(words, unpack(pack(words))) << i << " words of " << bits << " bits";
    }
    for (uint32_t i = 0; i < 20; i++) {
        const Words words = all_kinds(random);
        ASSERT_EQ(words, unpack(pack(words)));
    }
}

TEST(Pack, extreme_words_come_back)
{
    const uint64_t all = UINT64_MAX;
    for (const uint64_t word :
         {UINT64_C(0), UINT64_C(1), all, all << 32, all >> 32, UINT64_C(1) << 63})
        for (const size_t count : {1, 3, 4, 5, 19, 20, 10000})
            ASSERT_EQ(Words(count, word), unpack(pack(Words(count, word))));
    std::mt19937 random(2);
    Words words(200000);
    for (uint64_t &word : words)
        word = static_cast<uint64_t>(random()) << 32 | random();
    const Bytes bytes = pack(words);
    EXPECT_LE(bytes.size(), kpti_packed_bound(200000));
    EXPECT_EQ(words, unpack(bytes));
}

// The limit for real programs is 3 bytes an event: 6 a call.
TEST(Pack, events_become_small)
{
    std::mt19937 random(3);
    for (const uint32_t step : {1, 2, 16}) {
        const Words words = program(random, 8192, step);
        const Bytes bytes = pack(words);
        EXPECT_EQ(words, unpack(bytes));
        EXPECT_LT(bytes.size(), 3 * words.size()) << step;
    }
}

// A time that does not have the zeroes of the first ones.
TEST(Pack, a_late_odd_time_comes_back)
{
    std::mt19937 random(4);
    Words words = program(random, 1000, 64);
    words[999] ^= 1;
    EXPECT_EQ(words, unpack(pack(words)));
}

TEST(Pack, damaged_bytes_give_no_more_words)
{
    std::mt19937 random(5);
    for (uint32_t i = 0; i < 3000; i++) {
        Words words = i % 2 ? all_kinds(random) : program(random, 40 + i % 100, 2);
        Bytes bytes = pack(words);
        for (uint32_t flips = random() % 4; flips; flips--)
            bytes[random() % std::min<size_t>(bytes.size(), i % 3 ? 40 : SIZE_MAX)] ^=
                static_cast<char>(1 << random() % 8);
        if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
        bytes.shrink_to_fit();
        EXPECT_LE(unpack(bytes).size(), bytes.size());
    }
}

TEST(Pack, what_claims_too_much_is_refused)
{
    Bytes bytes = pack(Words(100, 7));
    const auto with = [&bytes](uint32_t kpti_packed_head::*field, uint32_t value) {
        kpti_packed_head head;
        memcpy(&head, bytes.data(), sizeof head);
        head.*field = value;
        Bytes other = bytes;
        memcpy(other.data(), &head, sizeof head);
        return kpti_packed_count(other.data(), other.size());
    };
    EXPECT_EQ(100u, with(&kpti_packed_head::shift, 31));
    EXPECT_EQ(0u, with(&kpti_packed_head::shift, 32));
    EXPECT_EQ(0u, with(&kpti_packed_head::count, 101));
    EXPECT_EQ(0u, with(&kpti_packed_head::count, UINT32_MAX));
    EXPECT_EQ(0u, with(&kpti_packed_head::uppers_bytes, UINT32_MAX));
    EXPECT_EQ(0u, kpti_packed_count(bytes.data(), sizeof(kpti_packed_head) - 1));
    EXPECT_EQ(0u, kpti_packed_count(nullptr, 0));
}

// The chunks of KEPT that have events, packed.
Kept packed(const Kept &kept)
{
    Kept out;
    for (kpt_chunk chunk : kept.chunks) {
        const auto *words = static_cast<const uint64_t *>(chunk.data);
        Bytes bytes;
        if (chunk.thread != KPT_CHUNK_TABLE && chunk.size_bytes) {
            bytes = pack(Words(words, words + chunk.size_bytes / 8));
            chunk.format |= KPTI_PACKED_FORMAT;
            chunk.data = bytes.data();
            chunk.size_bytes = bytes.size();
        }
        out.add(chunk);
    }
    return out;
}

TEST(PackedChunks, are_delivered_as_the_original)
{
    for (uint32_t seed = 0; seed < 100 && !testing::Test::HasFailure(); seed++) {
        ProgramOptions options;
        options.points = true;
        options.damage = seed % 3 == 0;
        Recording r;
        write_random_program(&r, seed, options);
        r.recording.min_duration_ns = seed % 4 == 1 ? 15 : 0;
        r.tape().begin_span(3, r.tape().now() + 1);
        r.cross_thread_end(3, 400);
        const Kept kept = keep(r);
        Kept small = packed(kept);
        Loaded loaded(small);
        ASSERT_EQ(KPT_OK, loaded.status) << loaded.error.text;
        for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
            Taking taking;
            taking.order = order;
            taking.flags = order == KPT_ORDER_START ? 0 : KPT_DELIVER_POINTS;
            const Taken direct = take(r, taking);
            ASSERT_EQ(all_of(direct), all_of(loaded.take(taking))) << "seed " << seed;
            EXPECT_EQ(direct.repairs, loaded.stats().events_repaired);
        }
    }
}

// Collects the names of ranges, which are valid until the sink returns.
kpt_status add_names(void *names, const kpt_batch *batch)
{
    for (uint32_t i = 0; i < batch->name_count; i++)
        if (batch->names[i].index > FUNCTIONS + 3)
            static_cast<std::string *>(names)->append(batch->names[i].function.data,
                                                      batch->names[i].function.size);
    return KPT_OK;
}

// The names of ranges are in the events: also of those whose chunk is over before the reader looks.
TEST(PackedChunks, names_of_ranges_outlive_their_chunk)
{
    std::string expected;
    Recording r;
    for (uint32_t i = 0; i < 40; i++) {
        const std::string name = "range " + std::to_string(i) + ",";
        expected += name;
        r.tape().chunk(100 * i + 1).enter(1, 100 * i + 1).begin_span(i + 1, 100 * i + 2);
        for (size_t at = 0; at < name.size(); at += KPTI_TEXT_BYTES)
            r.tape().word(kpti_text_make(name.data() + at, name.size() - at));
        r.tape().end_span(i + 1, 100 * i + 3).exit(1, 100 * i + 4);
    }
    r.tape().track.spans = 1;
    Kept kept = packed(keep(r));
    Loaded loaded(kept);
    ASSERT_EQ(KPT_OK, loaded.status) << loaded.error.text;
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_TIME; order++) {
        std::string names;
        kpt_delivery delivery;
        KPT_INIT(&delivery);
        delivery.order = order;
        delivery.flags = KPT_DELIVER_POINTS | KPT_DELIVER_RANGES;
        delivery.sink = add_names;
        delivery.sink_ctx = &names;
        ASSERT_EQ(KPT_OK, kpti_loaded_tracer.deliver(loaded.self, &delivery, &loaded.error));
        EXPECT_EQ(expected, names) << order;
    }
}

TEST(PackedChunks, are_counted_after_a_crash)
{
    Recording r;
    for (uint32_t i = 0; i < 500; i++)
        r.tape().enter(1, 2 * i).exit(1, 2 * i + 1);
    Kept kept = keep(r, false);
    Kept small = packed(kept);
    EXPECT_LT(small.chunks.back().size_bytes, kept.chunks.back().size_bytes / 2);
    EXPECT_EQ(Loaded(kept).stats().events, Loaded(small).stats().events);
}

// What the words are cannot be known before they are unpacked: the rest of the chunk is missing then.
TEST(PackedChunks, damaged_ones_are_repaired_or_refused)
{
    std::mt19937 random(6);
    Recording r;
    write_random_program(&r, 9, {});
    const Kept kept = keep(r);
    for (uint32_t i = 0; i < 500; i++) {
        Kept small = packed(kept);
        kpt_chunk &chunk = small.chunks[1 + random() % (small.chunks.size() - 1)];
        auto *bytes = static_cast<char *>(const_cast<void *>(chunk.data));
        if (i % 2) chunk.size_bytes = random() % (chunk.size_bytes + 1);
        if (chunk.size_bytes)
            bytes[random() % chunk.size_bytes] ^= static_cast<char>(1 << random() % 8);
        Loaded loaded(small);
        if (loaded.status == KPT_E_INVALID) continue;
        ASSERT_EQ(KPT_OK, loaded.status);
        for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
            Taking taking;
            taking.order = order;
            EXPECT_EQ(KPT_OK, loaded.take(taking).status);
        }
    }
}

TEST(PackedChunks, of_a_newer_format_are_refused)
{
    Recording r;
    r.tape().enter(1, 2).exit(1, 4);
    Kept kept = packed(keep(r));
    kept.chunks.back().format = KPTI_PACKED_FORMAT + 2 * KPTI_PACKED_FORMAT;
    Loaded loaded(kept);
    EXPECT_EQ(KPT_E_UNSUPPORTED, loaded.status);
    EXPECT_NE(nullptr, strstr(loaded.error.text, "format 8"));
}

TEST(PackedChunks, fail_at_each_allocation)
{
    mock_host host;
    kpti_env env{};
    Recording r;
    write_random_program(&r, 7, {});
    Kept kept = packed(keep(r));
    mock_host_init(&host, "pack_test");
    env.host = host.table;
    for (uint64_t n = 1;; n++) {
        kpt_status status;
        host.alloc_calls = 0;
        host.fail_alloc_at = n;
        {
            Loaded loaded(kept, &env);
            status = loaded.status;
            if (status == KPT_OK) status = loaded.take().status;
        }
        ASSERT_EQ(0u, host.live_blocks) << "a leak, when allocation " << n << " failed";
        ASSERT_EQ(0u, host.bad_frees);
        if (status == KPT_OK) break;
        ASSERT_EQ(KPT_E_MEMORY, status);
    }
}

} // namespace
