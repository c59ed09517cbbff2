/* service_thread.h: a thread that looks after a running session: at intervals, and when a signal comes. It knows
 * no Python and needs no GIL, so it works while the program hangs.
 *
 * Two keepers may listen at a time, one to SIGTERM and one to another signal. A signal's handler only counts
 * and wakes; who had set a handler before keeps it. */
#ifndef KPTI_HOSTS_STANDALONE_BACKGROUND_SERVICE_THREAD_H
#define KPTI_HOSTS_STANDALONE_BACKGROUND_SERVICE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_keeper {
    pthread_t thread;
    uint32_t woken; /* how often: it waits until this is another number */
    int signal;     /* 0: none */
    int ending;
    pid_t thread_id;      /* as the kernel numbers it; 0 until the thread runs */
    uint32_t requested;   /* calls of kpti_keeper_request … */
    uint32_t completed;   /* … and how many of them at_interval has answered */
    sigset_t unblocked;   /* signals that the thread receives while it answers a request */
    uint64_t interval_ns; /* 0: there is nothing to do at intervals */
    void (*at_interval)(void *ctx);
    void (*at_signal)(void *ctx);
    void *ctx;
} kpti_keeper;

/* Whether nobody has a handler for this signal; one of a keeper that a fork left behind is nobody's. */
int kpti_keeper_may_listen(int number);

/* Starts it, with all but thread and woken set and the rest zeroes. 0 or an errno: EBUSY where the signal
 * has a handler. */
int kpti_keeper_start(kpti_keeper *keeper);

/* Of one that runs: who took its handler away has taken away the own one, too. */
void kpti_keeper_listen_again(const kpti_keeper *keeper);

/* Has the thread run at_interval now. Returns the number of the request. Async-signal-safe, as are the next four;
 * the keeper runs until they have returned. */
uint32_t kpti_keeper_request(kpti_keeper *keeper);

/* Waits until REQUEST is answered, or for CLOCK_MONOTONIC to reach UNTIL_NS. */
void kpti_keeper_await(kpti_keeper *keeper, uint32_t request, int64_t until_ns);

/* Marks all requests as answered. Returns whether any was not. */
int kpti_keeper_complete(kpti_keeper *keeper);

/* Returns whether the calling thread is the keeper's. */
int kpti_keeper_is_current(const kpti_keeper *keeper);

/* Returns the time of CLOCK_MONOTONIC. */
int64_t kpti_keeper_now_ns(void);

/* It does nothing more; what it does is finished first. Signals are still caught, and wait. */
void kpti_keeper_rest(kpti_keeper *keeper);

/* Ends it. Returns how many signals came, and were not answered. */
int kpti_keeper_end(kpti_keeper *keeper);

#ifdef __cplusplus
}
#endif
#endif
