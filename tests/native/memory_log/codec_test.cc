/* codec_test.cc: what is packed is unpacked, whatever it is; usual programs become small; damaged bytes are refused. */
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/native/memory_log/packed_history.h"

namespace
{

template <typename T> std::unique_ptr<T> zeroed()
{
    auto made = std::make_unique<T>();
    std::memset(made.get(), 0, sizeof(T));
    return made;
}

uint32_t spaces[KPTI_MEMORY_POOL_COUNT];

std::vector<unsigned char> pack(const packed_history::steps &steps, uint32_t shift)
{
    auto packer = zeroed<kpti_memory_packer>();
    std::vector<unsigned char> bytes;
    packer->spaces = spaces;
    for (const kpti_memory_step &step : steps) {
        unsigned char space[KPTI_MEMORY_MAX_STEP];
        bytes.insert(bytes.end(), space, kpti_memory_pack(packer.get(), space, shift, &step));
    }
    return bytes;
}

void expect_same(const packed_history::steps &steps, uint32_t shift)
{
    const std::vector<unsigned char> bytes = pack(steps, shift);
    auto model = zeroed<kpti_memory_model>();
    const unsigned char *at = bytes.data();
    const unsigned char *end = at + bytes.size();
    uint64_t last = 0;
    for (size_t i = 0; i < steps.size(); i++) {
        const kpti_memory_step &given = steps[i];
        kpti_memory_step found = {};
        at = kpti_memory_unpack(model.get(), at, end, shift, &found);
        ASSERT_TRUE(at) << i;
        ASSERT_EQ(found.address, given.address) << i;
        ASSERT_EQ(found.os_tid, given.os_tid) << i;
        ASSERT_EQ(found.kind,
                  given.kind & ~(given.kind & KPTI_MEMORY_FREE ? KPTI_MEMORY_RESIZED : 0));
        ASSERT_GE(found.ticks, last) << i;
        ASSERT_LE(found.ticks, given.ticks) << i;
        ASSERT_LT(given.ticks - found.ticks, 1u << shift) << i;
        last = found.ticks;
        if (given.kind & KPTI_MEMORY_FREE) continue;
        ASSERT_EQ(found.size, given.size) << i;
        ASSERT_EQ(found.stack, given.stack) << i;
        ASSERT_EQ(found.pool, given.pool) << i;
    }
    EXPECT_EQ(at, end);
}

/* Numbers with any count of bits. */
uint64_t any(std::mt19937_64 &random, int bits)
{
    return random() >> (64 - random() % static_cast<uint64_t>(bits + 1)) % 64 &
           (~UINT64_C(0) >> (64 - bits));
}

TEST(Codec, RestoresAnything)
{
    for (unsigned seed = 0; seed < 13; seed++) {
        std::mt19937_64 random(seed);
        packed_history::steps steps;
        std::vector<uint64_t> addresses;
        uint64_t ticks = any(random, 60);
        for (int i = 0; i < 8000; i++) {
            const bool is_free = !addresses.empty() && random() % 2;
            kpti_memory_step s = {};
            ticks += any(random, random() % 1000 ? 12 : 40);
            s.ticks = ticks;
            s.os_tid = random() % 100 ? 7 : any(random, 64);
            s.kind = static_cast<uint16_t>(is_free ? 2 : random() % 8 ? 1 : 5);
            s.pool = static_cast<uint16_t>(any(random, 12));
            if (is_free) {
                s.address = addresses[random() % addresses.size()];
            } else {
                s.size = any(random, 48);
                s.stack = static_cast<uint32_t>(any(random, 32));
                s.address = random() % 3 && !addresses.empty()
                                ? addresses[random() % addresses.size()]
                                : any(random, 64);
                addresses.push_back(s.address);
            }
            steps.push_back(s);
        }
        expect_same(steps, seed % 13);
    }
}

/* A loop, as programs have them: blocks of some sizes, freed in an order that repeats. */
packed_history::steps loop(int rounds, int kept)
{
    packed_history::steps steps;
    std::vector<std::vector<uint64_t>> unused(64);
    std::vector<std::pair<uint64_t, uint64_t>> live;
    uint64_t fresh = UINT64_C(0x7f0000000000);
    uint64_t ticks = UINT64_C(1) << 40;
    for (int i = 0; i < rounds; i++) {
        for (uint32_t k = 0; k < 12; k++) {
            const uint64_t size = 24 + 16 * (k % 5);
            auto &list = unused[size / 16];
            kpti_memory_step s =
                step_of(static_cast<int64_t>(ticks += 300 + k), 0, size, KPTI_MEMORY_ALLOC, 2);
            s.stack = 5000 + k;
            if (list.empty()) {
                s.address = fresh;
                fresh += 96;
            } else {
                s.address = list.back();
                list.pop_back();
            }
            live.emplace_back(s.address, size);
            steps.push_back(s);
        }
        for (int k = 0; k < 12 && live.size() > static_cast<size_t>(kept); k++) {
            const auto [address, size] = live[0];
            live.erase(live.begin());
            unused[size / 16].push_back(address);
            steps.push_back(
                step_of(static_cast<int64_t>(ticks += 200), address, 0, KPTI_MEMORY_FREE, 2));
        }
    }
    return steps;
}

TEST(Codec, APredictableEventTakesOneByte)
{
    for (int kept : {0, 100}) {
        const auto steps = loop(5000, kept);
        EXPECT_LT(pack(steps, 5).size(), steps.size() * 11 / 10) << kept;
        expect_same(steps, 5);
    }
}

TEST(Codec, BlocksOfOtherSpacesAreOtherBlocks)
{
    const packed_history::steps steps = {
        step_of(1, 4096, 100, KPTI_MEMORY_ALLOC, 1), step_of(2, 4096, 200, KPTI_MEMORY_ALLOC, 9),
        step_of(3, 4096, 0, KPTI_MEMORY_FREE, 1), step_of(4, 4096, 0, KPTI_MEMORY_FREE, 9)};
    auto packer = zeroed<kpti_memory_packer>();
    auto model = zeroed<kpti_memory_model>();
    uint32_t two[KPTI_MEMORY_POOL_COUNT] = {};
    unsigned char bytes[1000];
    unsigned char *end = bytes;
    const unsigned char *at = bytes;
    two[9] = 1;
    packer->spaces = two;
    for (const kpti_memory_step &step : steps)
        end = kpti_memory_pack(packer.get(), end, 0, &step);
    for (const kpti_memory_step &step : steps) {
        kpti_memory_step found;
        at = kpti_memory_unpack(model.get(), at, end, 0, &found);
        ASSERT_TRUE(at);
        EXPECT_EQ(found.pool, step.pool);
        EXPECT_EQ(found.address, step.address);
    }
}

/* Each prefix ends in its events; changed bytes are events, or none, and are read within their bounds. */
TEST(Codec, DamagedBytesAreRefusedOrRead)
{
    const auto bytes = pack(loop(40, 7), 3);
    for (size_t size = 0; size < bytes.size(); size += 17) {
        std::vector<unsigned char> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
        auto model = zeroed<kpti_memory_model>();
        const unsigned char *at = cut.data();
        kpti_memory_step found;
        while (at && at < cut.data() + size)
            at = kpti_memory_unpack(model.get(), at, cut.data() + size, 3, &found);
    }
    std::mt19937_64 random(1);
    for (int round = 0; round < 150; round++) {
        std::vector<unsigned char> changed = bytes;
        auto model = zeroed<kpti_memory_model>();
        for (int i = 0; i < 1 + round % 5; i++)
            changed[random() % changed.size()] = static_cast<unsigned char>(random());
        const unsigned char *at = changed.data();
        const unsigned char *end = at + changed.size();
        kpti_memory_step found;
        while (at && at < end) {
            at = kpti_memory_unpack(model.get(), at, end, 3, &found);
            if (at) {
                EXPECT_LT(found.pool, KPTI_MEMORY_POOL_COUNT);
            }
        }
    }
}

} // namespace
