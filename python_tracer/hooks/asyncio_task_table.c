#include "python_tracer/hooks/asyncio_task_table.h"

#include "python_tracer/interpreter/cpython.h"

#include <stdlib.h>

typedef struct entry {
    const PyObject *task; /* an address only, not a reference */
    PyObject *ref;        /* a weak reference to the task */
    uint32_t key;         /* the tracer's key; 0: the entry is free */
    uint32_t number;
} entry;

enum { FIRST_CAPACITY = 256 };

/* Open addressing by task and key: an entry is in the first free slot from its hash on; at most half of the
 * slots are used. Guarded by the GIL, or by the mutex where there is no GIL. */
static struct {
    entry *entries;
    size_t capacity; /* 0, or a power of two */
    size_t count;
} table;
static kpti_python_mutex mutex;

/* Whether REF still refers to OBJECT. The function acquires no reference: a running task is alive. */
static int refers_to(PyObject *ref, const PyObject *object)
{
    PyObject *const *referent = &((PyWeakReference *)ref)->wr_object;
    return __atomic_load_n(referent, __ATOMIC_RELAXED) == object;
}

static size_t place_of(const PyObject *task, uint32_t key, size_t capacity)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)task >> 4 ^ key) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 32) & (capacity - 1);
}

/* Returns the entry of TASK, dead or alive, or the free slot where it belongs. */
static entry *find(const PyObject *task, uint32_t key)
{
    size_t at = place_of(task, key, table.capacity);
    while (table.entries[at].key &&
           (table.entries[at].task != task || table.entries[at].key != key))
        at = (at + 1) & (table.capacity - 1);
    return &table.entries[at];
}

static void put_all(const entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!entries[i].key) continue;
        if (refers_to(entries[i].ref, Py_None)) {
            Py_DECREF(entries[i].ref); /* the weak reference has no callback */
            continue;
        }
        *find(entries[i].task, entries[i].key) = entries[i];
        table.count++;
    }
}

/* Removes the entries of dead tasks and grows the table if needed. Returns 0 if there is no memory. */
static int reserve(void)
{
    entry *const old = table.entries;
    const size_t capacity = table.capacity;
    size_t alive = 0;
    size_t wanted = FIRST_CAPACITY;
    entry *made;
    for (size_t i = 0; i < capacity; i++)
        alive += old[i].key && !refers_to(old[i].ref, Py_None);
    while (wanted < alive * 4)
        wanted *= 2;
    made = calloc(wanted, sizeof *made);
    if (!made) return 0;
    table.entries = made;
    table.capacity = wanted;
    table.count = 0;
    put_all(old, capacity);
    free(old);
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
    kpti_python_lock(&mutex);
    if (table.count < table.capacity / 2 || reserve()) {
        entry *e = find(task, key);
        old = e->ref; /* of a dead task at the same address */
        table.count += !e->key;
        *e = (entry){task, ref, key, number};
    }
    kpti_python_unlock(&mutex);
    Py_XDECREF(old); /* the weak reference has no callback */
}

void kpti_task_table_forget(void)
{
    free(table.entries);
    memset(&table, 0, sizeof table);
    mutex = (kpti_python_mutex){0};
}

void kpti_task_table_release(void)
{
    entry *entries;
    size_t capacity;
    kpti_python_lock(&mutex);
    entries = table.entries;
    capacity = table.capacity;
    memset(&table, 0, sizeof table);
    kpti_python_unlock(&mutex);
    for (size_t i = 0; i < capacity; i++)
        Py_XDECREF(entries[i].ref);
    free(entries);
}
