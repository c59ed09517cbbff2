#include "hosts/standalone/background/crash_flush.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_KEEPERS = 8, STACK_BYTES = 64 << 10 };

/* The maximum time that a crashed thread waits for the flushes. The crash may have left a lock held that a
 * flush needs. */
static const int64_t max_wait_ns = INT64_C(3000000000);

/* A signal of a crash. Invariant: previous is valid while is_active. */
typedef struct crash_signal {
    int number;
    atomic_int is_active; /* a crash runs our handler first, then previous */
    struct sigaction previous;
} crash_signal;

static crash_signal signals[] = {
    {.number = SIGSEGV}, {.number = SIGBUS}, {.number = SIGFPE}, {.number = SIGABRT}};
enum { SIGNALS = sizeof signals / sizeof signals[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held in watch and unwatch */
static _Atomic(kpti_service_thread *) services[MAX_KEEPERS];
static pid_t
    process; /* that has these services; a child may exist without a call of forget_parent */
static atomic_int handling; /* handlers that may be using a service */
static _Alignas(64) char main_stack[STACK_BYTES];

/* The child of a fork has no service threads, and no thread that holds the lock. */
static void forget_parent(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    for (int i = 0; i < MAX_KEEPERS; i++)
        atomic_store(&services[i], NULL);
    atomic_store(&handling, 0);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_parent);
}

/* --- the handler ------------------------------------------------------------------------------ */

/* A flush has crashed on its own thread. If another crashed thread waits for the flush, that thread ends the
 * process by its own signal, and this thread never returns. */
static void end_flush(kpti_service_thread *service)
{
    if (!kpti_service_thread_complete(service)) return;
    for (;;)
        (void)pause();
}

static void flush_all(void)
{
    const int64_t until_ns = kpti_service_thread_now_ns() + max_wait_ns;
    kpti_service_thread *asked[MAX_KEEPERS];
    uint32_t requests[MAX_KEEPERS];
    if (process != getpid()) return;
    atomic_fetch_add(&handling, 1);
    for (int i = 0; i < MAX_KEEPERS; i++) {
        asked[i] = atomic_load(&services[i]);
        if (!asked[i]) continue;
        if (kpti_service_thread_is_current(asked[i])) {
            end_flush(asked[i]);
            asked[i] = NULL;
            continue;
        }
        requests[i] = kpti_service_thread_request(asked[i]);
    }
    for (int i = 0; i < MAX_KEEPERS; i++)
        if (asked[i]) kpti_service_thread_await(asked[i], requests[i], until_ns);
    atomic_fetch_sub(&handling, 1);
}

static void handle(int number, siginfo_t *info, void *context);

static int is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == handle;
}

static void set_default(int number)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    (void)sigaction(number, &action, NULL);
}

/* Restores the previous handler, once. If a handler above ours has restored ours, as faulthandler does, that
 * handler has already run, and the default is next. If another thread has already restored a handler for its
 * crash, that handler stays. */
static void restore(crash_signal *s)
{
    struct sigaction now;
    if (atomic_exchange(&s->is_active, 0))
        (void)sigaction(s->number, &s->previous, NULL);
    else if (sigaction(s->number, NULL, &now) == 0 && is_ours(&now))
        set_default(s->number);
}

/* The signal is blocked until this handler returns, and is then delivered with all of INFO. */
static void handle(int number, siginfo_t *info, void *context)
{
    const int saved = errno;
    const pid_t thread = (pid_t)syscall(SYS_gettid);
    (void)context;
    flush_all();
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i].number == number) restore(&signals[i]);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, info) != 0)
        (void)syscall(SYS_tgkill, getpid(), thread, number);
    errno = saved;
}

/* --- handlers, and the alternate stack -------------------------------------------------------- */

static void install(crash_signal *s, uint32_t chained)
{
    struct sigaction ours;
    struct sigaction now;
    if (sigaction(s->number, NULL, &now) != 0) return;
    if (is_ours(&now)) {
        if (atomic_load(&s->is_active)) return;
        memset(&now, 0, sizeof now); /* a handler above ours has restored ours */
        now.sa_handler = SIG_DFL;
    } else if (now.sa_handler == SIG_IGN ||
               (now.sa_handler != SIG_DFL && !(chained & 1U << s->number))) {
        return;
    }
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigfillset(&ours.sa_mask);
    s->previous = now;
    atomic_store(&s->is_active, 1);
    if (sigaction(s->number, &ours, NULL) != 0) atomic_store(&s->is_active, 0);
}

static void uninstall(crash_signal *s)
{
    struct sigaction now;
    if (!atomic_exchange(&s->is_active, 0)) return;
    if (sigaction(s->number, NULL, &now) == 0 && is_ours(&now))
        (void)sigaction(s->number, &s->previous, NULL);
}

/* For the main thread only, since another thread could end while this is its alternate stack. */
static void set_main_stack(int is_wanted)
{
    stack_t wanted;
    stack_t now;
    memset(&wanted, 0, sizeof wanted);
    if (getpid() != (pid_t)syscall(SYS_gettid) || sigaltstack(NULL, &now) != 0) return;
    wanted.ss_sp = main_stack;
    wanted.ss_size = sizeof main_stack;
    wanted.ss_flags = is_wanted ? 0 : SS_DISABLE;
    if (is_wanted ? now.ss_flags & SS_DISABLE : now.ss_sp == main_stack)
        (void)sigaltstack(&wanted, NULL);
}

/* --- watch and unwatch ------------------------------------------------------------------------ */

static int any_watched(void)
{
    for (int i = 0; i < MAX_KEEPERS; i++)
        if (atomic_load(&services[i])) return 1;
    return 0;
}

/* A crash of the service thread itself, while it flushes for a crash, must run the handler, too. Signals with
 * another handler stay blocked there; the kernel then ends the process by them. */
static void choose_unblocked(kpti_service_thread *service)
{
    (void)sigemptyset(&service->unblocked);
    for (int i = 0; i < SIGNALS; i++)
        if (atomic_load(&signals[i].is_active))
            (void)sigaddset(&service->unblocked, signals[i].number);
}

void kpti_crash_watch(kpti_service_thread *service, uint32_t chained)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SIGNALS; i++)
        install(&signals[i], chained);
    set_main_stack(1);
    choose_unblocked(service);
    process = getpid();
    for (int i = 0; i < MAX_KEEPERS; i++) {
        kpti_service_thread *none = NULL;
        if (atomic_compare_exchange_strong(&services[i], &none, service)) break;
    }
    pthread_mutex_unlock(&lock);
}

void kpti_crash_unwatch(kpti_service_thread *service)
{
    int was_watched = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_KEEPERS; i++) {
        kpti_service_thread *found = service;
        was_watched |= atomic_compare_exchange_strong(&services[i], &found, NULL);
    }
    if (was_watched && !any_watched()) {
        for (int i = 0; i < SIGNALS; i++)
            uninstall(&signals[i]);
        set_main_stack(0);
    }
    while (was_watched && atomic_load(&handling)) /* SERVICE is freed soon */
        (void)sched_yield();
    pthread_mutex_unlock(&lock);
}
