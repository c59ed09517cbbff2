#include "hosts/standalone/session/session_triggers.h"

#include <stdio.h>
#include <unistd.h>

#include "hosts/standalone/session/session_state.h"

static const int64_t hour_ns = (int64_t)3600 * KPTI_NS_PER_SECOND;
static const uint64_t longest_interval_ns = KPTI_NS_PER_SECOND;
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
    if (!t->hang_ns && !t->step_percent) return 0;
    if (!t->hang_ns || t->hang_ns / 4 > longest_interval_ns) return longest_interval_ns;
    return t->hang_ns / 4 ? t->hang_ns / 4 : 1;
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

void kpti_triggers_step(kpti_session *s, kpti_step_source source, int64_t begin_ns)
{
    const double ms = 1e6;
    kpti_triggers *t = &s->triggers;
    char reason[KPTI_MAX_REASON];
    kpti_slow_step slow;
    int is_slow;
    if (!is_on(s) || !t->step_percent) return;
    (void)pthread_mutex_lock(&t->lock);
    is_slow =
        kpti_step_clock_end(&t->steps, source, begin_ns, kpti_unix_ns(), t->step_percent, &slow);
    (void)pthread_mutex_unlock(&t->lock);
    if (!is_slow) return;
    (void)snprintf(reason, sizeof reason,
                   "step %llu took %.1f ms, %.1f times the median of %.1f ms",
                   (unsigned long long)slow.number, (double)slow.ns / ms,
                   (double)slow.ns / (double)(slow.median_ns ? slow.median_ns : 1),
                   (double)slow.median_ns / ms);
    ask(s, reason, 0);
    (void)kpti_service_thread_request(&s->service);
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

/* Asks for a dump if no thread has recorded anything for so long. */
static void look_for_hang(kpti_session *s, int64_t now_ns)
{
    kpti_triggers *t = &s->triggers;
    char reason[KPTI_MAX_REASON];
    kpt_stats stats;
    KPT_INIT(&stats);
    if (!t->hang_ns || s->tracer.ops->get_stats(s->tracer.self, &stats) != KPT_OK) return;
    if (stats.events != t->events) {
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

void kpti_triggers_look(kpti_session *s, kpti_dump_fn dump)
{
    const int64_t now_ns = kpti_service_thread_now_ns();
    kpti_triggers *t = &s->triggers;
    char reason[KPTI_MAX_REASON];
    int by_others;
    int may;
    look_for_hang(s, now_ns);
    (void)pthread_mutex_lock(&t->lock);
    memcpy(reason, t->asked, sizeof reason);
    by_others = t->asked_by_others;
    may = reason[0] && may_dump(t, now_ns);
    if (may && !by_others) {
        memcpy(t->reason, reason, sizeof reason);
        t->own++;
    }
    t->asked[0] = 0;
    (void)pthread_mutex_unlock(&t->lock);
    if (may) dump(s, reason);
    if (t->is_over_limit && !t->has_reported) {
        t->has_reported = 1;
        (void)fprintf(stderr,
                      "kpytrace: %s, but no trace is written: there were %u within an hour\n",
                      reason, t->most_per_hour);
    }
}
