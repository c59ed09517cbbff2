/* packed_history.h: a history of given allocations and frees, through packer and unpacker. */
#ifndef KPT_TEST_PACKED_HISTORY_H
#define KPT_TEST_PACKED_HISTORY_H

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "writers/memory/memory_survey.h"

struct packed_history {
    using steps = std::vector<kpti_memory_step>;

    explicit packed_history(const steps &given, uint64_t max = 0, uint64_t dropped = 0,
                            uint64_t sample_bytes = 0)
    {
        pack(given);
        /* a tick is a nanosecond, from 0 on */
        kpti_memory_state state = {0, 0, 0, 1000000000, dropped, 0, sample_bytes};
        add(KPTI_MEMORY_STATE, 1, 0, &state, sizeof state);
        EXPECT_EQ(open(max), KPT_OK);
    }
    /* Of records. */
    packed_history(int, std::vector<std::string> given) : records(std::move(given))
    {
        opened = open(0);
    }
    ~packed_history()
    {
        kpti_memory_survey_free(&survey);
        kpti_memory_history_close(&h);
    }
    packed_history(const packed_history &) = delete;
    packed_history &operator=(const packed_history &) = delete;

    void add(uint32_t what, uint32_t count, uint32_t shift, const void *bytes, size_t size)
    {
        const kpti_memory_record head = {what, count, shift, 0};
        std::string record(reinterpret_cast<const char *>(&head), sizeof head);
        records.push_back(record.append(static_cast<const char *>(bytes), size));
    }
    void pack(const steps &given)
    {
        auto packer = std::make_unique<kpti_memory_packer>();
        std::vector<unsigned char> bytes;
        uint32_t count = 0;
        std::memset(packer.get(), 0, sizeof *packer);
        packer->spaces = spaces;
        for (const kpti_memory_step &step : given) {
            unsigned char space[KPTI_MEMORY_MAX_STEP];
            unsigned char *end = kpti_memory_pack(packer.get(), space, 0, &step);
            EXPECT_LE(end - space, KPTI_MEMORY_MAX_STEP);
            bytes.insert(bytes.end(), space, end);
            count += end != space;
            if (bytes.size() < 5000) continue;
            add(KPTI_MEMORY_EVENTS, count, 0, bytes.data(), bytes.size());
            count = 0;
            bytes.clear();
        }
        add(KPTI_MEMORY_EVENTS, count, 0, bytes.data(), bytes.size());
    }
    kpt_status open(uint64_t max)
    {
        const kpti_memory_records from = {this, rewind, next};
        const kpt_status status = kpti_memory_history_open(&h, &from, max);
        std::memset(&survey, 0, sizeof survey);
        return status;
    }
    std::vector<kpti_memory_entry> entries()
    {
        std::vector<kpti_memory_entry> all;
        kpti_memory_entry e;
        kpti_memory_history_first(&h);
        while (kpti_memory_history_next(&h, &e))
            all.push_back(e);
        return all;
    }
    kpti_memory_survey &look()
    {
        kpti_memory_survey_free(&survey);
        EXPECT_TRUE(kpti_memory_survey_make(&survey, &h));
        return survey;
    }
    const kpti_memory_block &alive(uint32_t i)
    {
        return *kpti_memory_live_at(&h.live, survey.alive[i]);
    }

    std::vector<std::string> records;
    size_t at = 0;
    uint32_t spaces[KPTI_MEMORY_POOL_COUNT] = {};
    kpti_memory_history h;
    kpti_memory_survey survey;
    kpt_status opened = KPT_OK;

  private:
    static void rewind(void *ctx)
    {
        static_cast<packed_history *>(ctx)->at = 0;
    }
    static int next(void *ctx, const char **bytes, uint64_t *size)
    {
        auto *self = static_cast<packed_history *>(ctx);
        if (self->at == self->records.size()) return 0;
        *bytes = self->records[self->at].data();
        *size = self->records[self->at++].size();
        return 1;
    }
};

inline kpti_memory_step step_of(int64_t time, uint64_t address, uint64_t size, int kind,
                                uint32_t pool = 0)
{
    kpti_memory_step s = {};
    s.ticks = static_cast<uint64_t>(time);
    s.address = address;
    s.size = size;
    s.kind = static_cast<uint16_t>(kind);
    s.pool = static_cast<uint16_t>(pool);
    return s;
}

inline kpti_memory_step alloc(int64_t time, uint64_t address, uint64_t size)
{
    return step_of(time, address, size, KPTI_MEMORY_ALLOC);
}

inline kpti_memory_step release(int64_t time, uint64_t address)
{
    return step_of(time, address, 0, KPTI_MEMORY_FREE);
}

#endif
