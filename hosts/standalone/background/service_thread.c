#include "hosts/standalone/background/service_thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/helper_thread.h"

enum { NS_PER_SECOND = 1000 * 1000 * 1000 };

/* The listener of one signal. */
typedef struct ear {
    _Atomic(kpti_keeper *) listening; /* the service thread that the handler wakes … */
    pid_t listener;                   /* … and its process; a child of a fork has no listener */
    atomic_int signals;
    atomic_int handling; /* handlers that may have read `listening` */
} ear;

static ear ears[2];

static ear *ear_for(int number)
{
    return &ears[number == SIGTERM];
}

static void wake_waiters(uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Async-signal-safe. It uses no file descriptor, since the program may close it and reuse its number. */
static void wake(kpti_keeper *keeper)
{
    (void)__atomic_add_fetch(&keeper->woken, 1, __ATOMIC_SEQ_CST);
    wake_waiters(&keeper->woken);
}

static void handle(int number)
{
    const int saved = errno;
    ear *e = ear_for(number);
    kpti_keeper *keeper;
    if (e->listener != getpid()) { /* a child, where no thread listens */
        if (number != SIGTERM) return;
        (void)signal(SIGTERM, SIG_DFL);
        (void)raise(SIGTERM);
        return;
    }
    atomic_fetch_add(&e->handling, 1);
    keeper = atomic_load(&e->listening);
    atomic_fetch_add(&e->signals, 1);
    if (keeper) wake(keeper);
    atomic_fetch_sub(&e->handling, 1);
    errno = saved;
}

static void forget_parent(ear *e)
{
    if (e->listener == getpid()) return;
    atomic_store(&e->listening, NULL);
    atomic_store(&e->handling, 0);
}

int kpti_keeper_may_listen(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 &&
           (now.sa_handler == SIG_DFL || now.sa_handler == handle);
}

static int put_handler(int number)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_handler = handle;
    ours.sa_flags = SA_RESTART;
    (void)sigemptyset(&ours.sa_mask);
    return sigaction(number, &ours, NULL);
}

static int listen_to(kpti_keeper *keeper)
{
    ear *e = ear_for(keeper->signal);
    kpti_keeper *none = NULL;
    if (!keeper->signal) return 0;
    forget_parent(e);
    if (!kpti_keeper_may_listen(keeper->signal)) return EBUSY;
    if (!atomic_compare_exchange_strong(&e->listening, &none, keeper)) return EBUSY;
    e->listener = getpid();
    atomic_store(&e->signals, 0);
    if (put_handler(keeper->signal) == 0) return 0;
    atomic_store(&e->listening, NULL);
    return errno;
}

/* Restores the default, unless the program has installed another handler meanwhile. A signal that is being
 * handled finds no listener. */
static void stop_listening(const kpti_keeper *keeper)
{
    struct sigaction old;
    ear *e = ear_for(keeper->signal);
    if (!keeper->signal) return;
    if (sigaction(keeper->signal, NULL, &old) == 0 && old.sa_handler == handle) {
        memset(&old, 0, sizeof old);
        old.sa_handler = SIG_DFL;
        (void)sigaction(keeper->signal, &old, NULL);
    }
    atomic_store(&e->listening, NULL);
    while (atomic_load(&e->handling)) /* KEEPER is freed soon */
        (void)sched_yield();
}

int64_t kpti_keeper_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits until WORD is no longer SEEN, or until UNTIL_NS; may return earlier. Returns 0 if UNTIL_NS has passed. */
static int wait_for_change(uint32_t *word, uint32_t seen, int64_t until_ns)
{
    const int64_t left_ns = until_ns - kpti_keeper_now_ns();
    const struct timespec left = {left_ns / NS_PER_SECOND, left_ns % NS_PER_SECOND};
    if (left_ns <= 0) return 0;
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &left, NULL, 0);
    return 1;
}

/* Waits until `woken` differs from SEEN, or until the next interval. */
static void wait_until(kpti_keeper *keeper, uint32_t seen, int64_t next_ns)
{
    (void)wait_for_change(&keeper->woken, seen, keeper->interval_ns ? next_ns : INT64_MAX);
}

/* --- requests --------------------------------------------------------------------------------- */

uint32_t kpti_keeper_request(kpti_keeper *keeper)
{
    const uint32_t request = __atomic_add_fetch(&keeper->requested, 1, __ATOMIC_SEQ_CST);
    wake(keeper);
    return request;
}

void kpti_keeper_await(kpti_keeper *keeper, uint32_t request, int64_t until_ns)
{
    for (;;) {
        const uint32_t completed = __atomic_load_n(&keeper->completed, __ATOMIC_SEQ_CST);
        if ((int32_t)(completed - request) >= 0) return;
        if (!wait_for_change(&keeper->completed, completed, until_ns)) return;
    }
}

int kpti_keeper_complete(kpti_keeper *keeper)
{
    const uint32_t requested = __atomic_load_n(&keeper->requested, __ATOMIC_SEQ_CST);
    const uint32_t before = __atomic_exchange_n(&keeper->completed, requested, __ATOMIC_SEQ_CST);
    wake_waiters(&keeper->completed);
    return before != requested;
}

int kpti_keeper_is_current(const kpti_keeper *keeper)
{
    return __atomic_load_n(&keeper->thread_id, __ATOMIC_RELAXED) == (pid_t)syscall(SYS_gettid);
}

static int is_requested(const kpti_keeper *keeper)
{
    return keeper->completed != __atomic_load_n(&keeper->requested, __ATOMIC_SEQ_CST);
}

/* A request that arrives meanwhile may be too late for this call of at_interval, and is served next. */
static void answer_requests(kpti_keeper *keeper)
{
    const uint32_t requested = __atomic_load_n(&keeper->requested, __ATOMIC_SEQ_CST);
    (void)pthread_sigmask(SIG_UNBLOCK, &keeper->unblocked, NULL);
    keeper->at_interval(keeper->ctx);
    (void)pthread_sigmask(SIG_BLOCK, &keeper->unblocked, NULL);
    __atomic_store_n(&keeper->completed, requested, __ATOMIC_SEQ_CST);
    wake_waiters(&keeper->completed);
}

/* --- the thread ------------------------------------------------------------------------------- */

static int64_t next_time(const kpti_keeper *keeper)
{
    const uint64_t now = (uint64_t)kpti_keeper_now_ns();
    const uint64_t most = INT64_MAX - now;
    return (int64_t)(now + (keeper->interval_ns < most ? keeper->interval_ns : most));
}

static void *run(void *ctx)
{
    kpti_keeper *keeper = ctx;
    ear *e = ear_for(keeper->signal);
    int64_t next_ns = next_time(keeper);
    uint32_t seen = 0;
    __atomic_store_n(&keeper->thread_id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
    while (!__atomic_load_n(&keeper->ending, __ATOMIC_ACQUIRE)) {
        wait_until(keeper, seen, next_ns);
        seen = __atomic_load_n(&keeper->woken, __ATOMIC_SEQ_CST);
        while (keeper->signal && atomic_load(&e->signals) > 0) {
            atomic_fetch_sub(&e->signals, 1);
            keeper->at_signal(keeper->ctx);
        }
        while (is_requested(keeper))
            answer_requests(keeper);
        if (!keeper->interval_ns || kpti_keeper_now_ns() < next_ns) continue;
        keeper->at_interval(keeper->ctx);
        next_ns = next_time(keeper);
    }
    return NULL;
}

int kpti_keeper_start(kpti_keeper *keeper)
{
    int error = listen_to(keeper);
    if (error) return error;
    error = kpti_own_thread_start(&keeper->thread, run, keeper);
    if (error) stop_listening(keeper);
    return error;
}

void kpti_keeper_listen_again(const kpti_keeper *keeper)
{
    if (kpti_keeper_may_listen(keeper->signal)) (void)put_handler(keeper->signal);
}

void kpti_keeper_rest(kpti_keeper *keeper)
{
    if (keeper->ending) return;
    __atomic_store_n(&keeper->ending, 1, __ATOMIC_RELEASE);
    wake(keeper);
    (void)pthread_join(keeper->thread, NULL);
}

int kpti_keeper_end(kpti_keeper *keeper)
{
    kpti_keeper_rest(keeper);
    stop_listening(keeper);
    return keeper->signal ? atomic_exchange(&ear_for(keeper->signal)->signals, 0) : 0;
}
