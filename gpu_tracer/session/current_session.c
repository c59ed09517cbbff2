#include "gpu_tracer/session/current_session.h"

#include <pthread.h>

#include "core/base/assert.h"

_Atomic(kpti_gpu_session *) kpti_session_calls;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static kpti_gpu_session *owner;   /* of the slot */
static kpti_gpu_session *current; /* the owner, while callbacks may find it; else NULL */
static uint32_t users;            /* threads between enter and leave */

/* The caller holds the lock. */
static inline int is_valid_locked(void)
{
    return !current || current == owner;
}

kpti_gpu_session *kpti_session_enter(void)
{
    kpti_gpu_session *s;
    (void)pthread_mutex_lock(&lock);
    s = current;
    users += s != NULL;
    kpti_assert(is_valid_locked());
    (void)pthread_mutex_unlock(&lock);
    return s;
}

void kpti_session_leave(void)
{
    (void)pthread_mutex_lock(&lock);
    kpti_assert(users && owner); /* step_down waits for this thread */
    if (--users == 0) (void)pthread_cond_broadcast(&left);
    (void)pthread_mutex_unlock(&lock);
}

int kpti_session_become_current(kpti_gpu_session *s)
{
    int done;
    (void)pthread_mutex_lock(&lock);
    done = !owner;
    if (done) owner = current = s;
    (void)pthread_mutex_unlock(&lock);
    return done;
}

void kpti_session_step_down(void)
{
    (void)pthread_mutex_lock(&lock);
    kpti_assert(owner && is_valid_locked());
    current = NULL;
    while (users)
        (void)pthread_cond_wait(&left, &lock);
    (void)pthread_mutex_unlock(&lock);
}

void kpti_session_leave_slot(void)
{
    (void)pthread_mutex_lock(&lock);
    kpti_assert(owner && !current && !users);
    owner = NULL;
    (void)pthread_mutex_unlock(&lock);
}

int kpti_session_forget_owner(const kpti_gpu_session *s)
{
    const int was_owner = owner == s;
    if (was_owner) {
        atomic_store(&kpti_session_calls, NULL);
        owner = current = NULL;
        users = 0;
    }
    (void)pthread_mutex_init(&lock, NULL);
    (void)pthread_cond_init(&left, NULL);
    return was_owner;
}
