/* replay.c: the hot loop of a replay. An enter pushes a record, and an exit that matches the top pops it. All
 * other cases go to kpti_replay_slow, one at a time. Budget: 60 instructions per call. */
#include "core/recording/replay/replay.h"

#include "core/base/assert.h"
#include "core/recording/replay/replay_slow.h"

/* Makes a replay without a plan for spans of the host. */
static kpti_replay *new_plain(const kpti_env *env, const kpti_recording *recording, uint32_t track,
                              uint64_t first_id, const kpti_timebase *timebase)
{
    const kpti_track t = kpti_recording_track(recording, track);
    kpti_replay *r = kpti_alloc(env, sizeof *r);
    if (!r) return NULL;
    r->env = env;
    r->recording = recording;
    r->track = track;
    r->next = t.chunks;
    r->has_spans = t.spans != 0;
    r->first_id = r->next_id = first_id;
    r->function_count = recording->function_count;
    r->end_ns = timebase->end_ns;
    r->far_ns = INT64_MIN;
    if (!t.spans) r->far = recording->remote_end_count;
    if (!kpti_call_stack_init(&r->stack, env)) {
        kpti_free(env, r, sizeof *r);
        return NULL;
    }
    kpti_times_init(&r->times, timebase->convert, timebase->convert_ctx);
    return r;
}

/* Runs the first pass, which fills CLAMPS, for a track that has spans. Frees FIRST. Returns 0 if there is no
 * memory. */
static int plan_cuts(kpti_replay *first, kpti_span_clamps *clamps, int has_ranges)
{
    enum { BLOCK = 64 };
    kpt_activity unused[BLOCK];
    uint32_t count;
    kpti_filled left = KPTI_FILLED_MORE;
    if (!first) return 0;
    first->plan = clamps;
    first->options.has_ranges = has_ranges;
    while (left == KPTI_FILLED_MORE)
        left = kpti_replay_fill(first, KPTI_ENDS, unused, BLOCK, &count);
    kpti_replay_free(first);
    return left == KPTI_FILLED_ALL;
}

kpti_replay *kpti_replay_new(const kpti_env *env, const kpti_recording *recording, uint32_t track,
                             uint64_t first_id, const kpti_timebase *timebase,
                             kpti_replay_options options)
{
    kpti_replay *r = new_plain(env, recording, track, first_id, timebase);
    if (!r) return NULL;
    r->options = options;
    if (!r->has_spans) return r;
    r->clamps.env = env;
    if (plan_cuts(new_plain(env, recording, track, first_id, timebase), &r->clamps,
                  options.has_ranges))
        return r;
    kpti_replay_free(r);
    return NULL;
}

void kpti_replay_free(kpti_replay *r)
{
    if (!r) return;
    kpti_span_clamps_free(&r->clamps);
    kpti_call_stack_free(&r->stack);
    kpti_free(r->env, r->unpacked, r->unpacked_capacity * sizeof *r->unpacked);
    kpti_free(r->env, r, sizeof *r);
}

uint64_t kpti_replay_repairs(const kpti_replay *r)
{
    return r->repairs + r->times.repairs;
}

uint64_t kpti_replay_calls(const kpti_replay *r)
{
    return r->next_id - r->first_id;
}

/* Writes plain enters and exits until another event, or until there is no space. Returns the end of the written
 * activities. WHAT is a constant in each caller. */
static inline __attribute__((always_inline)) kpt_activity *
fill_plain(kpti_replay *r, const unsigned what, kpt_activity *out, const kpt_activity *end)
{
    const kpti_event *const events = r->events;
    const int64_t *const ns = r->times.ns;
    const uint32_t first = r->block_first;
    const uint32_t until = r->until;
    const uint32_t count = r->count;
    const uint32_t track = r->track;
    kpti_call_record *const last = r->stack.last;
    kpti_call_record *top = r->stack.top;
    uint64_t next_id = r->next_id;
    uint32_t at = r->at;
    while (at < until && out != end) {
        const uint32_t word = (uint32_t)(events[at] >> 32);
        const uint32_t kind = word & ((1U << KPTI_KIND_BITS) - 1);
        const int64_t now = ns[at - first];
        if (kind == KPTI_EVENT_EXIT && top->key == word - KPTI_EVENT_EXIT) {
            at++;
            if (what & KPTI_ENDS) kpti_call_write(top, now, track, KPT_PHASE_END, out++);
            top--;
        } else if (kind == KPTI_EVENT_ENTER && top != last) {
            at++;
            kpti_replay_begin(r, ++top, next_id++, word, now, 0);
            if (at < count && kpti_event_is_detail(events[at]))
                at = kpti_replay_details(r, at, top);
            if (what & KPTI_BEGINS) kpti_call_write(top, now, track, KPT_PHASE_BEGIN, out++);
        } else {
            break;
        }
    }
    r->stack.top = top;
    r->next_id = next_id;
    r->at = at;
    return out;
}

static kpt_activity *fill_as_asked(kpti_replay *r, unsigned what, kpt_activity *out,
                                   const kpt_activity *end)
{
    what &= KPTI_BEGINS | KPTI_ENDS;
    if (what == KPTI_ENDS) return fill_plain(r, KPTI_ENDS, out, end);
    if (what == KPTI_BEGINS) return fill_plain(r, KPTI_BEGINS, out, end);
    return fill_plain(r, KPTI_BEGINS | KPTI_ENDS, out, end);
}

kpti_filled kpti_replay_fill(kpti_replay *r, unsigned what, kpt_activity *activities,
                             uint32_t capacity, uint32_t *count)
{
    const kpt_activity *const end = activities + capacity;
    kpt_activity *out = activities;
    kpti_step step = KPTI_STEP_NONE;
    r->lends_events = 0;
    while (step != KPTI_STEP_DONE && step != KPTI_STEP_NO_MEMORY && step != KPTI_STEP_WAIT) {
        kpti_call_record *call;
        out = fill_as_asked(r, what, out, end);
        if (out == end) break;
        step = kpti_replay_slow(r, &call);
        if (step == KPTI_STEP_BEGIN && what & KPTI_BEGINS)
            kpti_call_write(call, call->start_ns, r->track, KPT_PHASE_BEGIN, out++);
        if (step == KPTI_STEP_END && what & KPTI_ENDS)
            kpti_call_write(call, call->end_ns, r->track, KPT_PHASE_END, out++);
        if (step == KPTI_STEP_POINT && what & KPTI_POINTS)
            kpti_call_write(call, call->end_ns, r->track, KPT_PHASE_COMPLETE, out++);
        if (step == KPTI_STEP_RANGE && what & KPTI_RANGES) {
            kpti_call_write(call, call->end_ns, r->track, KPT_PHASE_COMPLETE, out++);
            r->lends_events = 1;
        }
    }
    kpti_assert(out <= end);
    kpti_assert(step != KPTI_STEP_DONE || r->stack.top == r->stack.base);
    *count = (uint32_t)(out - activities);
    if (step == KPTI_STEP_DONE) return KPTI_FILLED_ALL;
    return step == KPTI_STEP_NO_MEMORY ? KPTI_FILLED_NO_MEMORY : KPTI_FILLED_MORE;
}
