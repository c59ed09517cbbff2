// kept.h: a recording as the tables and chunks that a sink has stored, and the recording that is loaded from them.
#ifndef KEPT_H
#define KEPT_H

#include <gtest/gtest.h>

#include "abi/kpt_text.h"
#include "tests/native/recording/delivered.h"

extern "C" {
#include "core/recording/serialized/chunk_loader.h"
#include "core/recording/serialized/loaded_tracer.h"
}

// Chunks that a sink has stored, for a loader.
struct Kept {
    std::vector<kpt_chunk> chunks;
    std::deque<std::vector<uint64_t>> bytes;
    size_t next = 0;
    kpt_status answer = KPT_DECLINED; // after the last

    void add(kpt_chunk chunk)
    {
        bytes.emplace_back((chunk.size_bytes + 7) / 8);
        if (chunk.size_bytes) memcpy(bytes.back().data(), chunk.data, chunk.size_bytes);
        chunk.data = bytes.back().data();
        chunks.push_back(chunk);
    }
    void add_words(const std::vector<uint64_t> &words, uint32_t thread = KPT_CHUNK_TABLE)
    {
        kpt_chunk chunk;
        KPT_INIT(&chunk);
        chunk.format = KPTI_CHUNK_FORMAT;
        chunk.thread = thread;
        chunk.data = words.data();
        chunk.size_bytes = 8 * words.size();
        add(chunk);
    }
    void add_table(const kpti_metadata &table)
    {
        kpt_chunk chunk;
        kpti_metadata_chunk(&table, &chunk);
        add(chunk);
    }
    void add_events(const kpti_recording &r)
    {
        for (uint32_t t = 0; t < r.track_count; t++)
            for (const kpti_chunk *c = r.tracks[t].chunks; c; c = c->next) {
                kpt_chunk chunk;
                KPT_INIT(&chunk);
                chunk.format = KPTI_CHUNK_FORMAT;
                chunk.thread = t;
                chunk.sequence = c->sequence;
                chunk.run = c->run;
                chunk.os_tid = r.tracks[t].os_tid;
                chunk.first_ticks = c->base_ticks;
                chunk.last_ticks = c->base_ticks;
                chunk.dropped_before = c->dropped_before;
                chunk.data = c->events;
                chunk.size_bytes = c->count * sizeof(kpti_event);
                add(chunk);
            }
    }
};

inline const kpti_clock_point some_point = {100, 0, 0, 1000000000, 0, 0};

// Runs, clock, threads, names and, if it is WHOLE, counters.
inline Kept keep(Recording &recording, bool whole = true)
{
    const kpti_env env{};
    const kpti_recording &r = *recording.view();
    kpti_metadata table{};
    kpt_stats stats;
    Kept kept;
    table.env = &env;
    KPT_INIT(&stats);
    stats.events = 77;
    kpti_metadata_add_clock(&table, &some_point);
    for (uint32_t i = 0; i < r.run_count; i++)
        kpti_metadata_add_run(&table, i, &r.runs[i]);
    for (uint32_t t = 0; t < r.track_count; t++)
        kpti_metadata_add_thread(&table, t, &r.tracks[t]);
    kpti_metadata_add_names(&table, r.describe, nullptr, 0, r.function_count);
    if (r.remote_end_count)
        kpti_metadata_add_cross_thread_ends(&table, r.cross_thread_ends, r.remote_end_count);
    if (whole) kpti_metadata_add_stats(&table, r.min_duration_ns, &stats);
    kept.add_table(table);
    kpti_metadata_free(&table);
    kept.add_events(r);
    return kept;
}

inline kpt_status next_kept(void *ctx, kpt_chunk *out)
{
    auto *kept = static_cast<Kept *>(ctx);
    if (kept->next == kept->chunks.size()) return kept->answer;
    *out = kept->chunks[kept->next++];
    return KPT_OK;
}

class Loaded
{
  public:
    explicit Loaded(Kept &kept, const kpti_env *env = nullptr, uint64_t min_duration_ns = 0)
    {
        static const kpti_env plain{};
        kpt_load_args args;
        KPT_INIT(&args);
        args.next = next_kept;
        args.next_ctx = &kept;
        args.min_duration_ns = min_duration_ns;
        kept.next = 0;
        status = kpti_loaded_make(env ? env : &plain, &args, &self, &error);
    }
    ~Loaded()
    {
        if (status == KPT_OK) kpti_loaded_tracer.destroy(self);
    }
    Taken take(const Taking &taking = {})
    {
        return take_from(
            [this](const kpt_delivery *delivery, kpti_error *why) {
                return kpti_loaded_tracer.deliver(self, delivery, why);
            },
            taking);
    }
    kpt_stats stats()
    {
        kpt_stats out;
        kpti_loaded_tracer.get_stats(self, &out);
        return out;
    }

    kpt_status status;
    kpti_error error{};
    void *self = nullptr;
};

inline std::string all_of(const Taken &t)
{
    std::string text = t.text() + "|" + t.points_text();
    for (const auto &[index, name] : t.names)
        text += "|" + std::to_string(index) + std::string(name.display.data, name.display.size) +
                std::string(name.file.data, name.file.size) + std::to_string(name.first_line);
    for (const auto &[index, thread] : t.threads)
        text += "|" + std::to_string(index) + std::string(thread.name.data, thread.name.size) +
                std::to_string(thread.os_tid) + "," + std::to_string(thread.host_value) + "," +
                std::to_string(thread.flags);
    for (const kpt_activity &a : t.activities)
        text += "|" + std::to_string(a.id) + "," + std::to_string(a.parent_id) + "," +
                std::to_string(a.line) + "," + std::to_string(a.value0) + "," +
                std::to_string(a.value2) + "," + std::to_string(a.kind);
    return text;
}

#endif
