// recording_builder.h: recordings for tests, written event by event. A tape has one thread's events. Each chunk's memory
// ends with its last event, so that AddressSanitizer detects any read behind it.
#ifndef RECORDING_BUILDER_H
#define RECORDING_BUILDER_H

#include <deque>
#include <memory>
#include <vector>

extern "C" {
#include "core/recording/delivery/deliver.h"
#include "core/recording/replay/replay.h"
}

struct ChunkDeleter {
    void operator()(kpti_chunk *chunk) const
    {
        free(chunk);
    }
};
using Chunk = std::unique_ptr<kpti_chunk, ChunkDeleter>;

class Tape
{
  public:
    // Begins another chunk, of the next run and sequence unless stated otherwise.
    Tape &chunk(uint64_t base_ticks);
    Tape &gap(uint64_t base_ticks, uint64_t dropped = 100); // a chunk after some that were dropped
    Tape &run(uint32_t run, uint64_t base_ticks);           // the first chunk of a run

    Tape &enter(uint32_t function, uint64_t ticks);
    Tape &exit(uint32_t function, uint64_t ticks);
    Tape &open(uint32_t function);
    Tape &line(uint32_t line);
    Tape &caller(uint32_t line);
    Tape &watch(uint64_t answer, uint32_t call_id);
    Tape &mark(uint64_t ticks, uint32_t number = 0);
    Tape &begin_span(uint32_t number, uint64_t ticks);
    Tape &end_span(uint32_t number, uint64_t ticks);
    Tape &gc_begin(uint32_t generation, uint64_t ticks);
    Tape &gc_end(uint32_t collected, uint32_t uncollectable, uint64_t ticks);

    // An event or a word as it is, with no EPOCH before it.
    Tape &raw(uint32_t kind, uint32_t number, uint64_t ticks);
    Tape &word(uint64_t word);

    // Fields of the current chunk that the functions above can't set.
    struct Head {
        uint64_t base_ticks = 0;
        uint64_t dropped_before = 0;
        uint32_t run = 0;
        uint32_t sequence = 0;
    };
    Head &head()
    {
        return parts_.back().head;
    }
    size_t size() const
    {
        return parts_.empty() ? 0 : parts_.back().events.size();
    }
    uint64_t now() const
    {
        return now_;
    }

    kpti_track track{}; // its chunks are set by Recording
    // Makes the chunks; returns the first.
    const kpti_chunk *chunks();

  private:
    struct Part {
        Head head;
        std::vector<kpti_event> events;
    };
    void event(uint32_t kind, uint32_t number, uint64_t ticks);

    std::deque<Part> parts_;
    std::vector<Chunk> made_;
    uint64_t now_ = 0;
    uint32_t high_ = 0;
};

// Function 3 is a C function; the others are Python's, at line 10 times their id.
enum { FUNCTIONS = 100, C_FUNCTION = 3 };

class Recording
{
  public:
    Recording();
    Tape &tape(size_t thread = 0);
    size_t threads() const
    {
        return tapes_.size();
    }
    Recording &stop(uint64_t ticks); // of the last run
    Recording &add_run(uint64_t start_ticks, uint64_t stop_ticks);
    // A span ends on another thread than it began on.
    Recording &cross_thread_end(uint32_t number, uint64_t ticks);
    // Valid until the recording changes.
    const kpti_recording *view();

    kpti_recording recording{};

  private:
    std::deque<Tape> tapes_;
    std::vector<kpti_track> tracks_;
    std::vector<kpti_run> runs_;
    std::vector<kpti_cross_thread_end> remote_ends_;
};

#endif
