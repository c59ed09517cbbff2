#include "gpu_tracer/records/record_store.h"

void kpti_gpu_lists_init(kpti_gpu_lists *lists)
{
    static const uint32_t sizes[KPTI_GPU_LISTS] = {
        [KPTI_GPU_EVENTS] = sizeof(kpt_gpu_event), [KPTI_GPU_CALLS] = sizeof(kpti_gpu_call),
        [KPTI_GPU_MARKS] = sizeof(kpti_gpu_mark),  [KPTI_GPU_LINKS] = sizeof(kpti_gpu_link),
        [KPTI_GPU_NAMED] = sizeof(kpt_gpu_name),
    };
    memset(lists, 0, sizeof *lists);
    for (int i = 0; i < KPTI_GPU_LISTS; i++)
        lists->of[i].item_size = sizes[i];
}

void kpti_gpu_lists_splice(kpti_gpu_lists *into, kpti_gpu_lists *from)
{
    for (int i = 0; i < KPTI_GPU_LISTS; i++)
        kpti_list_splice(&into->of[i], &from->of[i]);
}

void kpti_gpu_lists_free(kpti_gpu_lists *lists, kpti_gpu_budget *budget)
{
    for (int i = 0; i < KPTI_GPU_LISTS; i++)
        kpti_list_free(&lists->of[i], budget);
}

void kpti_record_store_init(kpti_gpu_store *store, kpti_gpu_budget *budget)
{
    memset(store, 0, sizeof *store);
    (void)pthread_mutex_init(&store->lock, NULL);
    store->budget = budget;
    kpti_names_init(&store->names, budget);
    kpti_gpu_lists_init(&store->lists);
}

void kpti_record_store_free(kpti_gpu_store *store)
{
    kpti_gpu_lists_free(&store->lists, store->budget);
    kpti_names_free(&store->names);
    (void)pthread_mutex_destroy(&store->lock);
}

void kpti_record_store_put(kpti_gpu_store *store, kpti_gpu_lists *lists)
{
    (void)pthread_mutex_lock(&store->lock);
    kpti_gpu_lists_splice(&store->lists, lists);
    (void)pthread_mutex_unlock(&store->lock);
}

void kpti_record_store_get(kpti_gpu_store *store, kpti_gpu_lists *lists)
{
    (void)pthread_mutex_lock(&store->lock);
    kpti_gpu_lists_splice(lists, &store->lists);
    (void)pthread_mutex_unlock(&store->lock);
}

/* At the fork, another thread may have held a lock and been in the middle of a change. The child then
 * neither trusts nor frees what the lock guards. */
void kpti_record_store_forked(kpti_gpu_store *store)
{
    const int whole = pthread_mutex_trylock(&store->lock) == 0;
    if (whole) {
        kpti_gpu_lists_free(&store->lists, store->budget);
        (void)pthread_mutex_unlock(&store->lock);
    } else {
        for (int i = 0; i < KPTI_GPU_LISTS; i++)
            kpti_list_forget(&store->lists.of[i]);
        (void)pthread_mutex_init(&store->lock, NULL);
    }
    if (pthread_mutex_trylock(&store->names.lock) == 0) {
        (void)pthread_mutex_unlock(&store->names.lock);
    } else {
        memset(&store->names.texts, 0, sizeof store->names.texts);
        (void)pthread_mutex_init(&store->names.lock, NULL);
    }
}
