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
typedef struct signal_slot {
    _Atomic(kpti_service_thread *) listening; /* the service thread that the handler wakes … */
    pid_t listener; /* … and its process; a child of a fork has no listener */
    atomic_int signals;
    atomic_int handling; /* handlers that may have read `listening` */
} signal_slot;

static signal_slot signal_slots[2];

static signal_slot *slot_for(int number)
{
    return &signal_slots[number == SIGTERM];
}

static void wake_waiters(uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Async-signal-safe. It uses no file descriptor, since the program may close it and reuse its number. */
static void wake(kpti_service_thread *service)
{
    (void)__atomic_add_fetch(&service->woken, 1, __ATOMIC_SEQ_CST);
    wake_waiters(&service->woken);
}

static void handle(int number)
{
    const int saved = errno;
    signal_slot *e = slot_for(number);
    kpti_service_thread *service;
    if (e->listener != getpid()) { /* a child, where no thread listens */
        if (number != SIGTERM) return;
        (void)signal(SIGTERM, SIG_DFL);
        (void)raise(SIGTERM);
        return;
    }
    atomic_fetch_add(&e->handling, 1);
    service = atomic_load(&e->listening);
    atomic_fetch_add(&e->signals, 1);
    if (service) wake(service);
    atomic_fetch_sub(&e->handling, 1);
    errno = saved;
}

static void forget_parent(signal_slot *e)
{
    if (e->listener == getpid()) return;
    atomic_store(&e->listening, NULL);
    atomic_store(&e->handling, 0);
}

int kpti_service_thread_may_listen(int number)
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

static int listen_to(kpti_service_thread *service)
{
    signal_slot *e = slot_for(service->signal);
    kpti_service_thread *none = NULL;
    if (!service->signal) return 0;
    forget_parent(e);
    if (!kpti_service_thread_may_listen(service->signal)) return EBUSY;
    if (!atomic_compare_exchange_strong(&e->listening, &none, service)) return EBUSY;
    e->listener = getpid();
    atomic_store(&e->signals, 0);
    if (put_handler(service->signal) == 0) return 0;
    atomic_store(&e->listening, NULL);
    return errno;
}

/* Restores the default, unless the program has installed another handler meanwhile. A signal that is being
 * handled finds no listener. */
static void stop_listening(const kpti_service_thread *service)
{
    struct sigaction old;
    signal_slot *e = slot_for(service->signal);
    if (!service->signal) return;
    if (sigaction(service->signal, NULL, &old) == 0 && old.sa_handler == handle) {
        memset(&old, 0, sizeof old);
        old.sa_handler = SIG_DFL;
        (void)sigaction(service->signal, &old, NULL);
    }
    atomic_store(&e->listening, NULL);
    while (atomic_load(&e->handling)) /* SERVICE is freed soon */
        (void)sched_yield();
}

int64_t kpti_service_thread_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits until WORD is no longer SEEN, or until UNTIL_NS; may return earlier. Returns 0 if UNTIL_NS has passed. */
static int wait_for_change(uint32_t *word, uint32_t seen, int64_t until_ns)
{
    const int64_t left_ns = until_ns - kpti_service_thread_now_ns();
    const struct timespec left = {left_ns / NS_PER_SECOND, left_ns % NS_PER_SECOND};
    if (left_ns <= 0) return 0;
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &left, NULL, 0);
    return 1;
}

/* Waits until `woken` differs from SEEN, or until the next interval. */
static void wait_until(kpti_service_thread *service, uint32_t seen, int64_t next_ns)
{
    (void)wait_for_change(&service->woken, seen, service->interval_ns ? next_ns : INT64_MAX);
}

/* --- requests --------------------------------------------------------------------------------- */

uint32_t kpti_service_thread_request(kpti_service_thread *service)
{
    const uint32_t request = __atomic_add_fetch(&service->requested, 1, __ATOMIC_SEQ_CST);
    wake(service);
    return request;
}

void kpti_service_thread_await(kpti_service_thread *service, uint32_t request, int64_t until_ns)
{
    for (;;) {
        const uint32_t completed = __atomic_load_n(&service->completed, __ATOMIC_SEQ_CST);
        if ((int32_t)(completed - request) >= 0) return;
        if (!wait_for_change(&service->completed, completed, until_ns)) return;
    }
}

int kpti_service_thread_complete(kpti_service_thread *service)
{
    const uint32_t requested = __atomic_load_n(&service->requested, __ATOMIC_SEQ_CST);
    const uint32_t before = __atomic_exchange_n(&service->completed, requested, __ATOMIC_SEQ_CST);
    wake_waiters(&service->completed);
    return before != requested;
}

int kpti_service_thread_is_current(const kpti_service_thread *service)
{
    return __atomic_load_n(&service->thread_id, __ATOMIC_RELAXED) == (pid_t)syscall(SYS_gettid);
}

static int is_requested(const kpti_service_thread *service)
{
    return service->completed != __atomic_load_n(&service->requested, __ATOMIC_SEQ_CST);
}

/* A request that arrives meanwhile may be too late for this call of at_interval, and is served next. */
static void answer_requests(kpti_service_thread *service)
{
    const uint32_t requested = __atomic_load_n(&service->requested, __ATOMIC_SEQ_CST);
    (void)pthread_sigmask(SIG_UNBLOCK, &service->unblocked, NULL);
    service->at_interval(service->ctx);
    (void)pthread_sigmask(SIG_BLOCK, &service->unblocked, NULL);
    __atomic_store_n(&service->completed, requested, __ATOMIC_SEQ_CST);
    wake_waiters(&service->completed);
}

/* --- the thread ------------------------------------------------------------------------------- */

static int64_t next_time(const kpti_service_thread *service)
{
    const uint64_t now = (uint64_t)kpti_service_thread_now_ns();
    const uint64_t max = INT64_MAX - now;
    return (int64_t)(now + (service->interval_ns < max ? service->interval_ns : max));
}

static void *run(void *ctx)
{
    kpti_service_thread *service = ctx;
    signal_slot *e = slot_for(service->signal);
    int64_t next_ns = next_time(service);
    uint32_t seen = 0;
    __atomic_store_n(&service->thread_id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
    while (!__atomic_load_n(&service->ending, __ATOMIC_ACQUIRE)) {
        wait_until(service, seen, next_ns);
        seen = __atomic_load_n(&service->woken, __ATOMIC_SEQ_CST);
        while (service->signal && atomic_load(&e->signals) > 0) {
            atomic_fetch_sub(&e->signals, 1);
            service->at_signal(service->ctx);
        }
        while (is_requested(service))
            answer_requests(service);
        if (!service->interval_ns || kpti_service_thread_now_ns() < next_ns) continue;
        service->at_interval(service->ctx);
        next_ns = next_time(service);
    }
    return NULL;
}

int kpti_service_thread_start(kpti_service_thread *service)
{
    int error = listen_to(service);
    if (error) return error;
    error = kpti_own_thread_start(&service->thread, run, service);
    if (error) stop_listening(service);
    return error;
}

void kpti_service_thread_listen_again(const kpti_service_thread *service)
{
    if (kpti_service_thread_may_listen(service->signal)) (void)put_handler(service->signal);
}

void kpti_service_thread_pause(kpti_service_thread *service)
{
    if (service->ending) return;
    __atomic_store_n(&service->ending, 1, __ATOMIC_RELEASE);
    wake(service);
    (void)pthread_join(service->thread, NULL);
}

int kpti_service_thread_end(kpti_service_thread *service)
{
    kpti_service_thread_pause(service);
    stop_listening(service);
    return service->signal ? atomic_exchange(&slot_for(service->signal)->signals, 0) : 0;
}
