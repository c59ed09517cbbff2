/* replay.c: the two hot loops of a replay: an enter pushes a record, an exit that matches the top pops
 * it, and whatever else there is goes to kpti_replay_slow, one thing at a time. A call costs about 60
 * instructions in kpti_replay_fill. */
#include "replay.h"

#include "replay_state.h"

kpti_replay *kpti_replay_new(const kpti_env *env, const kpti_recording *recording, uint32_t track,
                             uint64_t first_id, const kpti_timebase *timebase)
{
    kpti_replay *r = kpti_alloc(env, sizeof *r);
    if (!r) return NULL;
    r->env = env;
    r->recording = recording;
    r->track = track;
    r->next = recording->tracks[track].chunks;
    r->first_id = first_id;
    r->function_count = recording->function_count;
    r->end_ns = timebase->end_ns;
    if (!kpti_call_stack_init(&r->stack, env)) {
        kpti_free(env, r, sizeof *r);
        return NULL;
    }
    kpti_times_init(&r->times, timebase->convert, timebase->convert_ctx);
    return r;
}

void kpti_replay_free(kpti_replay *r)
{
    if (!r) return;
    kpti_call_stack_free(&r->stack);
    kpti_free(r->env, r, sizeof *r);
}

uint64_t kpti_replay_repairs(const kpti_replay *r)
{
    return r->repairs + r->times.repairs;
}

uint64_t kpti_replay_calls(const kpti_replay *r)
{
    return r->calls;
}

/* What the loops look at: an event's upper half. */
static inline uint32_t kind_of(uint32_t word)
{
    return word & ((1U << KPTI_KIND_BITS) - 1);
}

kpti_step kpti_replay_next(kpti_replay *r, kpti_call_record **record)
{
    int step = KPTI_GO_ON;
    while (step == KPTI_GO_ON) {
        if (r->at < r->until) {
            const uint32_t word = (uint32_t)(r->events[r->at] >> 32);
            const int64_t ns = r->times.ns[r->at - r->block_first];
            kpti_call_record *top = r->stack.top;
            if (kind_of(word) == KPTI_EVENT_EXIT && top->key == word - KPTI_EVENT_EXIT) {
                top->end_ns = ns;
                r->stack.top = top - 1;
                r->at++;
                *record = top;
                return KPTI_STEP_END;
            }
            if (kind_of(word) == KPTI_EVENT_ENTER && top != r->stack.last) {
                kpti_replay_begin(r, ++top, r->calls++, word, ns, 0);
                r->stack.top = top;
                r->at++;
                if (r->at < r->count && kpti_is_detail(r->events[r->at]))
                    r->at = kpti_replay_details(r, r->at, top);
                *record = top;
                return KPTI_STEP_BEGIN;
            }
        }
        step = kpti_replay_slow(r, record);
    }
    return (kpti_step)step;
}

/* Enters and exits, until there is something else or no room. Returns where the activities end. */
static kpt_activity *fill_plain(kpti_replay *r, kpt_activity *out, const kpt_activity *end)
{
    const kpti_event *const events = r->events;
    const int64_t *const ns = r->times.ns;
    const uint32_t first = r->block_first;
    const uint32_t until = r->until;
    const uint32_t count = r->count;
    const uint32_t track = r->track;
    kpti_call_record *const last = r->stack.last;
    kpti_call_record *top = r->stack.top;
    uint64_t calls = r->calls;
    uint32_t at = r->at;
    while (at < until) {
        const uint32_t word = (uint32_t)(events[at] >> 32);
        if (kind_of(word) == KPTI_EVENT_EXIT && top->key == word - KPTI_EVENT_EXIT) {
            if (out == end) break;
            kpti_call_write(top--, ns[at++ - first], track, out++);
        } else if (kind_of(word) == KPTI_EVENT_ENTER && top != last) {
            kpti_replay_begin(r, ++top, calls++, word, ns[at++ - first], 0);
            if (at < count && kpti_is_detail(events[at])) at = kpti_replay_details(r, at, top);
        } else {
            break;
        }
    }
    r->stack.top = top;
    r->calls = calls;
    r->at = at;
    return out;
}

kpti_step kpti_replay_fill(kpti_replay *r, kpt_activity *activities, uint32_t room,
                           uint32_t *filled)
{
    kpt_activity *out = activities;
    int step = KPTI_GO_ON;
    for (;;) {
        kpti_call_record *call;
        out = fill_plain(r, out, activities + room);
        if (out == activities + room) break;
        step = kpti_replay_slow(r, &call);
        if (step == KPTI_STEP_END) kpti_call_write(call, call->end_ns, r->track, out++);
        if (step == KPTI_STEP_DONE || step == KPTI_STEP_NO_MEMORY) break;
    }
    *filled = (uint32_t)(out - activities);
    return step == KPTI_STEP_DONE || step == KPTI_STEP_NO_MEMORY ? (kpti_step)step : KPTI_STEP_END;
}
