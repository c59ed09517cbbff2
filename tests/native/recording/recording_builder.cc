#include "tests/native/recording/recording_builder.h"

#include <cstdio>

Tape &Tape::chunk(uint64_t base_ticks)
{
    Head head;
    if (!parts_.empty()) {
        head.run = parts_.back().head.run;
        head.sequence = parts_.back().head.sequence + 1;
    }
    head.base_ticks = base_ticks;
    parts_.push_back({head, {}});
    now_ = base_ticks;
    high_ = static_cast<uint32_t>(base_ticks >> 32);
    return *this;
}

Tape &Tape::gap(uint64_t base_ticks, uint64_t dropped)
{
    chunk(base_ticks);
    head().sequence++;
    head().dropped_before = dropped;
    return *this;
}

Tape &Tape::run(uint32_t run, uint64_t base_ticks)
{
    chunk(base_ticks);
    head().run = run;
    head().sequence = 0;
    return *this;
}

Tape &Tape::word(uint64_t word)
{
    if (parts_.empty()) chunk(0);
    parts_.back().events.push_back(word);
    return *this;
}

Tape &Tape::raw(uint32_t kind, uint32_t number, uint64_t ticks)
{
    return word(kpti_event_make(kind, number, ticks));
}

// As a tracer writes it: if the upper half of the counter has changed, an EPOCH precedes the event.
void Tape::event(uint32_t kind, uint32_t number, uint64_t ticks)
{
    now_ = ticks;
    if (parts_.empty()) chunk(ticks);
    if (ticks >> 32 != high_) {
        raw(KPTI_EVENT_EPOCH, 0, ticks).word(ticks);
        high_ = static_cast<uint32_t>(ticks >> 32);
    }
    raw(kind, number, ticks);
}

Tape &Tape::enter(uint32_t function, uint64_t ticks)
{
    event(KPTI_EVENT_ENTER, function, ticks);
    return *this;
}

Tape &Tape::exit(uint32_t function, uint64_t ticks)
{
    event(KPTI_EVENT_EXIT, function, ticks);
    return *this;
}

Tape &Tape::open(uint32_t function)
{
    event(KPTI_EVENT_OPEN, function, now_);
    return *this;
}

Tape &Tape::line(uint32_t line)
{
    event(KPTI_EVENT_LINE, line, now_);
    return *this;
}

Tape &Tape::caller(uint32_t line)
{
    event(KPTI_EVENT_CALLER, line, now_);
    return *this;
}

Tape &Tape::watch(uint64_t answer, uint32_t call_id)
{
    event(KPTI_EVENT_WATCH, call_id, now_);
    return word(answer);
}

Tape &Tape::mark(uint64_t ticks, uint32_t number)
{
    event(KPTI_EVENT_MARK, number, ticks);
    return *this;
}

Tape &Tape::begin_span(uint32_t number, uint64_t ticks)
{
    event(KPTI_EVENT_SPAN_BEGIN, number, ticks);
    track.spans++;
    return *this;
}

Tape &Tape::end_span(uint32_t number, uint64_t ticks)
{
    event(KPTI_EVENT_SPAN_END, number, ticks);
    return *this;
}

Tape &Tape::gc_begin(uint32_t generation, uint64_t ticks)
{
    event(KPTI_EVENT_GC_BEGIN, generation, ticks);
    return *this;
}

Tape &Tape::gc_end(uint32_t collected, uint32_t uncollectable, uint64_t ticks)
{
    event(KPTI_EVENT_GC_END, 0, ticks);
    return word(static_cast<uint64_t>(uncollectable) << 32 | collected);
}

const kpti_chunk *Tape::chunks()
{
    made_.clear();
    for (const Part &part : parts_) {
        const size_t bytes = part.events.size() * sizeof(kpti_event);
        auto *chunk = static_cast<kpti_chunk *>(malloc(sizeof(kpti_chunk) + bytes));
        if (!chunk) abort();
        memset(chunk, 0, sizeof *chunk);
        chunk->events = reinterpret_cast<kpti_event *>(chunk + 1);
        if (bytes) memcpy(chunk->events, part.events.data(), bytes);
        chunk->base_ticks = part.head.base_ticks;
        chunk->dropped_before = part.head.dropped_before;
        chunk->run = part.head.run;
        chunk->sequence = part.head.sequence;
        chunk->count = chunk->capacity = static_cast<uint32_t>(part.events.size());
        if (!made_.empty()) made_.back()->next = chunk;
        made_.emplace_back(chunk);
    }
    return made_.empty() ? nullptr : made_.front().get();
}

namespace
{

kpt_str str(const char *text)
{
    return {text, strlen(text)};
}

int describe(void *, uint32_t id, kpti_function_view *out)
{
    static char names[FUNCTIONS][16];
    if (id >= FUNCTIONS) return 0;
    (void)snprintf(names[id], sizeof names[id], "f%u", id);
    memset(out, 0, sizeof *out);
    out->display = out->function = out->qualname = str(names[id]);
    out->file = id == C_FUNCTION ? str("") : str("file.py");
    out->first_line = 10 * id;
    out->kind = id == C_FUNCTION ? KPT_KIND_C : KPT_KIND_PYTHON;
    return 1;
}

} // namespace

Recording::Recording()
{
    recording.describe = describe;
    recording.function_count = FUNCTIONS;
    runs_.push_back({0, 1000000});
}

Tape &Recording::tape(size_t thread)
{
    while (tapes_.size() <= thread) {
        tapes_.emplace_back();
        tapes_.back().track.os_tid = 1000 + tapes_.size();
        tapes_.back().track.host_value = 7 * tapes_.size();
        tapes_.back().track.name = str("a thread");
    }
    return tapes_[thread];
}

Recording &Recording::stop(uint64_t ticks)
{
    runs_.back().stop_ticks = ticks;
    return *this;
}

Recording &Recording::add_run(uint64_t start_ticks, uint64_t stop_ticks)
{
    runs_.push_back({start_ticks, stop_ticks});
    return *this;
}

Recording &Recording::cross_thread_end(uint32_t number, uint64_t ticks)
{
    remote_ends_.push_back({ticks, number, 0});
    return *this;
}

const kpti_recording *Recording::view()
{
    tracks_.clear();
    for (Tape &tape : tapes_) {
        tape.track.chunks = tape.chunks();
        tracks_.push_back(tape.track);
    }
    recording.tracks = tracks_.data();
    recording.track_count = static_cast<uint32_t>(tracks_.size());
    recording.runs = runs_.data();
    recording.run_count = static_cast<uint32_t>(runs_.size());
    recording.cross_thread_ends = remote_ends_.data();
    recording.remote_end_count = remote_ends_.size();
    return &recording;
}
