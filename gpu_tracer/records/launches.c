#include "gpu_tracer/records/launches.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "gpu_tracer/records/record_store.h"

static _Atomic(kpti_gpu_thread *) threads;
static _Thread_local kpti_gpu_thread *mine;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The list keeps its items; the reader does not need the thread that wrote them. */
static void leave(void *thread)
{
    mine = NULL;
    atomic_store_explicit(&((kpti_gpu_thread *)thread)->taken, 0, memory_order_release);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_exit, leave);
}

static kpti_gpu_thread *take_over(void)
{
    kpti_gpu_thread *thread = kpti_launches_threads();
    for (; thread; thread = thread->next) {
        int taken = 0;
        if (atomic_compare_exchange_strong_explicit(&thread->taken, &taken, 1, memory_order_acquire,
                                                    memory_order_relaxed))
            return thread;
    }
    return NULL;
}

static kpti_gpu_thread *make(void)
{
    kpti_gpu_thread *thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    thread->taken = 1;
    thread->list.item_size = sizeof(kpti_launch);
    thread->calls.item_size = sizeof(kpti_gpu_call);
    thread->next = atomic_load_explicit(&threads, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&threads, &thread->next, thread,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    return thread;
}

kpti_gpu_thread *kpti_launches_mine(void)
{
    kpti_gpu_thread *thread = mine;
    if (thread) return thread;
    (void)pthread_once(&once, make_key);
    thread = take_over();
    if (!thread) thread = make();
    if (!thread) return NULL;
    kpti_assert(atomic_load_explicit(&thread->taken, memory_order_relaxed));
    kpti_assert(!atomic_load_explicit(&thread->inside, memory_order_relaxed));
    thread->depth = 0;
    thread->context = NULL;
    thread->os_tid = (uint64_t)syscall(SYS_gettid);
    (void)pthread_setspecific(at_exit, thread);
    mine = thread;
    return thread;
}

kpti_gpu_thread *kpti_launches_threads(void)
{
    return atomic_load_explicit(&threads, memory_order_acquire);
}

void kpti_launches_forked(void)
{
    for (kpti_gpu_thread *thread = kpti_launches_threads(); thread; thread = thread->next) {
        kpti_list_forget(&thread->list);
        memset(&thread->read, 0, sizeof thread->read);
        kpti_list_forget(&thread->calls);
        memset(&thread->calls_read, 0, sizeof thread->calls_read);
        atomic_store_explicit(&thread->inside, 0, memory_order_relaxed);
        if (thread != mine)
            atomic_store_explicit(&thread->taken, 0, memory_order_relaxed);
        else
            thread->os_tid = (uint64_t)syscall(SYS_gettid);
    }
}
