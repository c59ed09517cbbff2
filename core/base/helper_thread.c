#include "core/base/helper_thread.h"

#include <signal.h>

int kpti_own_thread_start(pthread_t *thread, void *(*run)(void *), void *ctx)
{
    sigset_t all;
    sigset_t before;
    int error;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, run, ctx);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) (void)pthread_setname_np(*thread, "kpytrace");
    return error;
}
