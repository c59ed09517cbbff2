/* service_thread.h: a thread that works for a running session at intervals and when a signal arrives. It uses
 * no Python and needs no GIL, so it works while the program hangs.
 *
 * Two service threads may listen at a time, one to SIGTERM and one to another signal. The signal handler only
 * counts and wakes. A handler that the program has set before is kept. */
#ifndef KPTI_HOSTS_STANDALONE_BACKGROUND_SERVICE_THREAD_H
#define KPTI_HOSTS_STANDALONE_BACKGROUND_SERVICE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* woken, ending, thread_id, requested and completed are shared by threads, and accessed with __atomic functions:
 * the tests, in C++, use this struct, and C++ has no _Atomic. */
typedef struct kpti_service_thread {
    pthread_t thread;
    uint32_t woken; /* number of wakes; the thread waits until it changes */
    int signal;     /* 0 if there is none */
    int ending;
    pid_t thread_id;      /* the kernel's thread id; 0 until the thread runs */
    uint32_t requested;   /* calls of kpti_service_thread_request … */
    uint32_t completed;   /* … and how many of them at_interval has completed */
    sigset_t unblocked;   /* signals that the thread receives while it serves a request */
    uint64_t interval_ns; /* 0 if there is no work at intervals */
    void (*at_interval)(void *ctx);
    void (*at_signal)(void *ctx);
    void *ctx;
} kpti_service_thread;

/* Returns 1 if the program has no handler for this signal. A handler of a service thread that a fork left
 * behind does not count. */
int kpti_service_thread_may_listen(int number);

/* Starts the thread. The caller has set all fields but thread and woken, and zeroed the rest. Returns 0, or an
 * errno: EBUSY if the signal has a handler. */
int kpti_service_thread_start(kpti_service_thread *service);

/* Installs the handler of a running service thread again. The program had replaced it by its own handler, and
 * has removed that one. */
void kpti_service_thread_listen_again(const kpti_service_thread *service);

/* Makes the thread run at_interval now. Returns the number of the request. Async-signal-safe, as are the next
 * four functions; the thread must run until they have returned. */
uint32_t kpti_service_thread_request(kpti_service_thread *service);

/* Waits until REQUEST is completed, or CLOCK_MONOTONIC reaches UNTIL_NS. */
void kpti_service_thread_await(kpti_service_thread *service, uint32_t request, int64_t until_ns);

/* Marks all requests as completed. Returns 1 if any was not. */
int kpti_service_thread_complete(kpti_service_thread *service);

/* Returns 1 if the calling thread is the service's. */
int kpti_service_thread_is_current(const kpti_service_thread *service);

/* Returns the time of CLOCK_MONOTONIC. */
int64_t kpti_service_thread_now_ns(void);

/* Ends the thread after its current work. Signals are still caught and counted until kpti_service_thread_end. A
 * repeated call does nothing. */
void kpti_service_thread_pause(kpti_service_thread *service);

/* Ends the thread, if it runs, and removes the signal handler. Returns the number of signals that arrived and
 * were not handled. */
int kpti_service_thread_end(kpti_service_thread *service);

#ifdef __cplusplus
}
#endif
#endif
