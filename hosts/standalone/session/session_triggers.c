#include "hosts/standalone/session/session_triggers.h"

#include <stdio.h>
#include <unistd.h>

#include "hosts/standalone/session/session_state.h"

static const int64_t hour_ns = (int64_t)3600 * KPTI_NS_PER_SECOND;
static const uint64_t longest_interval_ns = KPTI_NS_PER_SECOND;
static const uint64_t shortest_interval_ns = KPTI_NS_PER_SECOND / 50;
/* Threads that wait for something and look for it now and then make fewer events, as those of torch's DataLoader. */
static const double idle_events_per_second = 50;
static const uint32_t usual_per_hour = 6;
/* Ranks that wait for one another find the same cause one after the other. */
static const int64_t apart_ns = (int64_t)5 * KPTI_NS_PER_SECOND;

uint64_t kpti_triggers_begin(kpti_session *s, const kpti_session_options *options)
{
    kpti_triggers *t = &s->triggers;
    (void)pthread_mutex_init(&t->lock, NULL);
    t->hang_ns = options->hang_ns;
    t->step_percent = options->step_percent;
    t->most_per_hour = options->dumps_per_hour ? options->dumps_per_hour : usual_per_hour;
    if (t->most_per_hour > KPTI_MAX_PER_HOUR) t->most_per_hour = KPTI_MAX_PER_HOUR;
    t->changed_ns = kpti_service_thread_now_ns();
    if (s->tracer.flags & KPT_OBJECT_NOOP) t->hang_ns = t->step_percent = 0; /* has no events */
    if (!t->hang_ns && !t->step_percent) return 0;
    if (!t->hang_ns || t->hang_ns / 4 > longest_interval_ns) return longest_interval_ns;
    return t->hang_ns / 4 > shortest_interval_ns ? t->hang_ns / 4 : shortest_interval_ns;
}

void kpti_triggers_turn_on(kpti_session *s)
{
    atomic_store(&s->triggers.is_on, s->triggers.hang_ns || s->triggers.step_percent);
}

void kpti_triggers_turn_off(kpti_session *s)
{
    atomic_store(&s->triggers.is_on, 0);
}

/* The child of a fork has no service thread. */
static int is_on(kpti_session *s)
{
    return atomic_load(&s->triggers.is_on) && s->pid == getpid();
}

/* Keeps the first of several reasons. */
static void ask(kpti_session *s, const char *reason, int by_others)
{
    kpti_triggers *t = &s->triggers;
    (void)pthread_mutex_lock(&t->lock);
    if (!t->asked[0]) {
        (void)snprintf(t->asked, sizeof t->asked, "%s", reason);
        t->asked_by_others = by_others;
    }
    (void)pthread_mutex_unlock(&t->lock);
}

void kpti_triggers_ask(kpti_session *s, const char *reason)
{
    if (!is_on(s)) return;
    ask(s, reason, 1);
    (void)kpti_service_thread_request(&s->service);
}

static void ask_for(kpti_session *s, const kpti_slow_step *slow)
{
    const double ms = 1e6;
    char reason[KPTI_MAX_REASON];
    (void)snprintf(reason, sizeof reason,
                   "step %llu took %.1f ms, %.1f times the median of %.1f ms",
                   (unsigned long long)slow->number, (double)slow->ns / ms,
                   (double)slow->ns / (double)(slow->median_ns ? slow->median_ns : 1),
                   (double)slow->median_ns / ms);
    ask(s, reason, 0);
    (void)kpti_service_thread_request(&s->service);
}

/* A span of NS that is a step, or, if OPTIMIZER is not NULL, a step of that optimizer at NOW_NS. */
static void take_step(kpti_session *s, uint64_t ns, const uint64_t *optimizer, int64_t now_ns)
{
    kpti_triggers *t = &s->triggers;
    kpti_slow_step slow;
    int is_slow;
    if (!is_on(s)) return;
    (void)pthread_mutex_lock(&t->lock);
    is_slow = optimizer
                  ? kpti_slow_steps_optimizer(&t->steps, *optimizer, now_ns, t->step_percent, &slow)
                  : kpti_slow_steps_span(&t->steps, ns, t->step_percent, &slow);
    (void)pthread_mutex_unlock(&t->lock);
    if (is_slow && t->step_percent) ask_for(s, &slow);
}

void kpti_triggers_span(kpti_session *s, uint64_t ns)
{
    take_step(s, ns, NULL, 0);
}

void kpti_triggers_optimizer(kpti_session *s, uint64_t key)
{
    take_step(s, 0, &key, kpti_service_thread_now_ns());
}

uint32_t kpti_triggers_own(kpti_session *s, char *reason)
{
    kpti_triggers *t = &s->triggers;
    uint32_t own;
    reason[0] = 0;
    if (s->pid != getpid()) return 0;
    (void)pthread_mutex_lock(&t->lock);
    own = t->own;
    memcpy(reason, t->reason, KPTI_MAX_REASON);
    (void)pthread_mutex_unlock(&t->lock);
    return own;
}

static uint64_t ended_steps(kpti_triggers *t)
{
    uint64_t ended;
    (void)pthread_mutex_lock(&t->lock);
    ended = t->steps.ended;
    (void)pthread_mutex_unlock(&t->lock);
    return ended;
}

/* Returns 1 if the program has done something since changed_ns: recorded anything, or, if it makes steps, ended one or
 * recorded more than its idle threads do. */
static int has_moved(const kpti_triggers *t, uint64_t events, uint64_t ended, int64_t now_ns)
{
    const double seconds = (double)(now_ns - t->changed_ns) / KPTI_NS_PER_SECOND;
    if (!ended) return events != t->events;
    return ended != t->ended ||
           (double)(events - t->events) > idle_events_per_second * (seconds > 1 ? seconds : 1);
}

/* Asks for a dump if nothing has happened for so long. */
static void look_for_hang(kpti_session *s, int64_t now_ns)
{
    kpti_triggers *t = &s->triggers;
    const uint64_t ended = ended_steps(t);
    char reason[KPTI_MAX_REASON];
    kpt_stats stats;
    KPT_INIT(&stats);
    if (!t->hang_ns || s->tracer.ops->get_stats(s->tracer.self, &stats) != KPT_OK) return;
    /* A ring's count is of what it holds and what it has dropped. */
    stats.events += stats.events_dropped;
    if (has_moved(t, stats.events, ended, now_ns)) {
        t->ended = ended;
        t->events = stats.events;
        t->changed_ns = now_ns;
        t->is_hanging = 0;
        return;
    }
    if (t->is_hanging || (uint64_t)(now_ns - t->changed_ns) < t->hang_ns) return;
    (void)snprintf(reason, sizeof reason, "nothing has happened for %.1f s",
                   (double)(now_ns - t->changed_ns) / KPTI_NS_PER_SECOND);
    ask(s, reason, 0);
}

/* Returns 1 if a dump at NOW_NS is within the limits. */
static int may_dump(kpti_triggers *t, int64_t now_ns)
{
    const uint32_t last = (t->dumps + KPTI_MAX_PER_HOUR - 1) % KPTI_MAX_PER_HOUR;
    const uint32_t oldest = (t->dumps + KPTI_MAX_PER_HOUR - t->most_per_hour) % KPTI_MAX_PER_HOUR;
    if (t->dumps && now_ns - t->times_ns[last] < apart_ns) return 0;
    if (t->dumps >= t->most_per_hour && now_ns - t->times_ns[oldest] < hour_ns) {
        t->is_over_limit = 1;
        return 0;
    }
    /* The same cause: another rank may have found it first. */
    if (t->hang_ns && (uint64_t)(now_ns - t->changed_ns) >= t->hang_ns / 2) t->is_hanging = 1;
    t->times_ns[t->dumps++ % KPTI_MAX_PER_HOUR] = now_ns;
    return 1;
}

/* Drops what was asked for while a dump was written: it has the same cause, and is in the file. */
static void end_dump(kpti_triggers *t)
{
    (void)pthread_mutex_lock(&t->lock);
    t->asked[0] = 0;
    t->times_ns[(t->dumps + KPTI_MAX_PER_HOUR - 1) % KPTI_MAX_PER_HOUR] =
        kpti_service_thread_now_ns();
    (void)pthread_mutex_unlock(&t->lock);
}

void kpti_triggers_look(kpti_session *s, kpti_dump_fn dump)
{
    const int64_t now_ns = kpti_service_thread_now_ns();
    kpti_triggers *t = &s->triggers;
    char reason[KPTI_MAX_REASON];
    int may;
    look_for_hang(s, now_ns);
    (void)pthread_mutex_lock(&t->lock);
    memcpy(reason, t->asked, sizeof reason);
    /* A hang that is in a dump is not written again because another rank has found it. */
    may = reason[0] && !(t->is_hanging && t->asked_by_others) && may_dump(t, now_ns);
    if (may && !t->asked_by_others) {
        memcpy(t->reason, reason, sizeof reason);
        t->own++;
    }
    t->asked[0] = 0;
    (void)pthread_mutex_unlock(&t->lock);
    if (may) {
        dump(s, reason);
        end_dump(t);
    }
    if (t->is_over_limit && !t->has_reported) {
        t->has_reported = 1;
        (void)fprintf(stderr,
                      "kpytrace: %s, but no trace is written: there were %u within an hour\n",
                      reason, t->most_per_hour);
    }
}
