#include "python_tracer/hooks/asyncio_task_table.h"

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "python_tracer/interpreter/cpython.h"
#include <stdlib.h>

typedef struct entry {
    const PyObject *task; /* an address only, not a reference */
    PyObject *ref;        /* a weak reference to the task */
    uint32_t key;         /* the tracer's key; 0: the entry is free */
    uint32_t number;
} entry;

enum { FIRST_CAPACITY = 256 };

/* Entries by task and key. Guarded by the GIL, or by the mutex where there is no GIL. */
static kpti_hash_table table;
static kpti_python_mutex mutex;

/* Whether REF still refers to OBJECT. The function acquires no reference: a running task is alive. The field is
 * CPython's, so it is not _Atomic. */
static int refers_to(PyObject *ref, const PyObject *object)
{
    PyObject *const *referent = &((PyWeakReference *)ref)->wr_object;
    return __atomic_load_n(referent, __ATOMIC_RELAXED) == object;
}

static uint64_t hash_of(const PyObject *task, uint32_t key)
{
    return kpti_hash_spread((uint64_t)(uintptr_t)task >> 4 ^ key) >> 32;
}

static int is_used(const void *slot)
{
    return ((const entry *)slot)->key != 0;
}

static int has_key(const void *slot, const void *wanted, const void *ctx)
{
    const entry *a = slot;
    const entry *b = wanted;
    (void)ctx;
    return a->task == b->task && a->key == b->key;
}

static uint64_t hash(const void *slot, const void *ctx)
{
    (void)ctx;
    return hash_of(((const entry *)slot)->task, ((const entry *)slot)->key);
}

static const kpti_hash_slots slots = {sizeof(entry), FIRST_CAPACITY, is_used, has_key, hash};

/* Returns the entry of TASK, dead or alive, or the free slot where it belongs. */
static entry *find(const PyObject *task, uint32_t key)
{
    const entry wanted = {.task = task, .key = key};
    return kpti_hash_table_find(&table, &slots, hash_of(task, key), &wanted, NULL);
}

static entry *entry_at(const kpti_hash_table *in, uint64_t i)
{
    return kpti_hash_table_at(in, &slots, i);
}

static int is_alive(const entry *e)
{
    return e->key && !refers_to(e->ref, Py_None);
}

/* Removes the entries of dead tasks and grows the table if needed. Returns 0 if there is no memory. */
static int reserve(void)
{
    kpti_hash_table made;
    uint64_t alive = 0;
    uint64_t wanted = FIRST_CAPACITY;
    for (uint64_t i = 0; i < table.capacity; i++)
        alive += (uint64_t)is_alive(entry_at(&table, i));
    while (wanted < alive * 4)
        wanted *= 2;
    if (!kpti_hash_table_make(&made, &slots, &kpti_malloc_heap, wanted)) return 0;
    for (uint64_t i = 0; i < table.capacity; i++) {
        const entry *e = entry_at(&table, i);
        if (is_alive(e)) {
            *(entry *)kpti_hash_table_place(&made, &slots, hash(e, NULL)) = *e;
            made.count++;
        } else {
            Py_XDECREF(e->ref); /* the weak reference has no callback */
        }
    }
    kpti_hash_table_free(&table, &slots, &kpti_malloc_heap);
    table = made;
    return 1;
}

uint32_t kpti_task_table_find(const PyObject *task, uint32_t key, int *known)
{
    const entry *e;
    uint32_t number = 0;
    kpti_python_lock(&mutex);
    e = table.capacity ? find(task, key) : NULL;
    *known = e && e->key && refers_to(e->ref, task);
    if (*known) number = e->number;
    kpti_python_unlock(&mutex);
    return number;
}

void kpti_task_table_add(const PyObject *task, PyObject *ref, uint32_t key, uint32_t number)
{
    PyObject *old = ref;
    kpti_assert(key && task && ref); /* key 0 marks a free entry */
    kpti_python_lock(&mutex);
    if (!kpti_hash_table_is_full(&table) || reserve()) {
        entry *e = find(task, key);
        old = e->ref; /* of a dead task at the same address */
        table.count += !e->key;
        *e = (entry){task, ref, key, number};
    }
    kpti_assert(kpti_is_power_or_zero(table.capacity) && table.count * 2 <= table.capacity);
    kpti_python_unlock(&mutex);
    Py_XDECREF(old); /* the weak reference has no callback */
}

void kpti_task_table_forget(void)
{
    kpti_hash_table_free(&table, &slots, &kpti_malloc_heap);
    mutex = (kpti_python_mutex){0};
}

void kpti_task_table_release(void)
{
    kpti_hash_table old;
    kpti_python_lock(&mutex);
    old = table;
    memset(&table, 0, sizeof table);
    kpti_python_unlock(&mutex);
    for (uint64_t i = 0; i < old.capacity; i++)
        Py_XDECREF(entry_at(&old, i)->ref);
    kpti_hash_table_free(&old, &slots, &kpti_malloc_heap);
}
