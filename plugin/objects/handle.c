#include "plugin/objects/handle.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/lock_owner.h"

enum { SLOTS = 1024, INDEX_BITS = 16 };

typedef struct slot {
    _Atomic(void *) object;      /* NULL if the slot is free; atomic, since peek takes no lock */
    _Atomic uint64_t generation; /* of the live object, or of the previous one */
    _Atomic(const kpti_handle_kind *) kind;
    uint32_t pins;
    int inside; /* 1 while a control call is inside the object; inside_of is its thread */
    pthread_t inside_of;
    kpti_error error;
} slot;

static slot slots[SLOTS];
static kpti_error process_error; /* of handle 0: the last failed entry */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;

void kpti_handles_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_handles_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

/* Whether the calling thread, which holds the lock, is inside the live object of S. */
static inline int is_inside_locked(const slot *s)
{
    return kpti_lock_is_mine(&lock_owner) && s->inside &&
           pthread_equal(s->inside_of, pthread_self());
}

static slot *slot_of(kpt_handle handle)
{
    uint64_t index = handle & ((1U << INDEX_BITS) - 1);
    slot *s;
    if (index == 0 || index > SLOTS) return NULL;
    s = &slots[index - 1];
    if (atomic_load_explicit(&s->generation, memory_order_acquire) != handle >> INDEX_BITS)
        return NULL;
    return atomic_load_explicit(&s->object, memory_order_acquire) ? s : NULL;
}

static slot *slot_of_kind(kpt_handle handle, const kpti_handle_kind *kind)
{
    slot *s = slot_of(handle);
    return s && atomic_load_explicit(&s->kind, memory_order_acquire) == kind ? s : NULL;
}

kpt_status kpti_handle_new(const kpti_handle_kind *kind, void *object, const char *text,
                           kpt_handle *out)
{
    uint64_t generation;
    kpt_status status = KPT_E_LIMIT;
    kpti_assert(kind && object); /* NULL marks a free slot */
    kpti_handles_lock();
    for (size_t i = 0; i < SLOTS && status != KPT_OK; i++) {
        slot *s = &slots[i];
        if (atomic_load_explicit(&s->object, memory_order_relaxed)) continue;
        generation = atomic_load_explicit(&s->generation, memory_order_relaxed) + 1;
        s->pins = 0;
        s->inside = 0;
        (void)snprintf(s->error.text, sizeof s->error.text, "%s", text);
        /* The generation is stored first: a thread that peeks with a dead handle and reads the new object also
         * reads the new generation. */
        atomic_store_explicit(&s->generation, generation, memory_order_release);
        atomic_store_explicit(&s->kind, kind, memory_order_release);
        atomic_store_explicit(&s->object, object, memory_order_release);
        *out = generation << INDEX_BITS | (i + 1);
        kpti_assert(slot_of_kind(*out, kind) == s);
        status = KPT_OK;
    }
    kpti_handles_unlock();
    return status;
}

kpt_status kpti_call_begin(kpti_call *call, kpt_handle handle, const kpti_handle_kind *kind)
{
    kpt_status status = KPT_OK;
    slot *s;
    call->handle = handle;
    call->object = NULL;
    call->error.text[0] = 0;
    kpti_handles_lock();
    s = slot_of_kind(handle, kind);
    if (!s) {
        status = KPT_E_HANDLE;
    } else if (s->inside) {
        status = kpti_fail(&s->error, KPT_E_BUSY,
                           "another call on this %s has not returned: make one call at a time, and "
                           "none from inside a sink",
                           kind->noun);
    } else {
        s->inside = 1;
        s->inside_of = pthread_self();
        call->object = atomic_load_explicit(&s->object, memory_order_relaxed);
    }
    kpti_handles_unlock();
    return status;
}

kpt_status kpti_call_leave(kpti_call *call, kpt_status status)
{
    slot *s;
    kpti_handles_lock();
    s = slot_of(call->handle);
    if (s) {
        kpti_assert(is_inside_locked(s));
        s->inside = 0;
        if (status != KPT_OK) s->error = call->error;
    }
    kpti_handles_unlock();
    return status;
}

kpt_status kpti_call_end(kpti_call *call)
{
    kpt_status status = KPT_OK;
    slot *s;
    kpti_handles_lock();
    s = slot_of(call->handle);
    if (s) s->inside = 0;
    if (!s)
        status = KPT_E_HANDLE;
    else if (s->pins > 0)
        status = kpti_fail(&s->error, KPT_E_STATE,
                           "%u objects made through this %s are still alive: destroy them first",
                           s->pins, atomic_load_explicit(&s->kind, memory_order_relaxed)->noun);
    else
        atomic_store_explicit(&s->object, NULL, memory_order_release);
    kpti_handles_unlock();
    return status;
}

void *kpti_handle_pin(kpt_handle handle, const kpti_handle_kind *kind)
{
    void *object = NULL;
    slot *s;
    kpti_handles_lock();
    s = slot_of_kind(handle, kind);
    if (s) {
        s->pins++;
        object = atomic_load_explicit(&s->object, memory_order_relaxed);
    }
    kpti_handles_unlock();
    return object;
}

void kpti_handle_unpin(kpt_handle handle)
{
    slot *s;
    kpti_handles_lock();
    s = slot_of(handle);
    if (s && s->pins > 0) s->pins--;
    kpti_handles_unlock();
}

void *kpti_handle_peek(kpt_handle handle, const kpti_handle_kind *kind)
{
    const uint64_t index = handle & ((1U << INDEX_BITS) - 1);
    slot *s;
    void *object;
    if (index == 0 || index > SLOTS) return NULL;
    s = &slots[index - 1];
    object = atomic_load_explicit(&s->object, memory_order_acquire);
    /* The slot of a dead handle may be in use again. Its generation then differs. */
    if (atomic_load_explicit(&s->kind, memory_order_acquire) != kind ||
        atomic_load_explicit(&s->generation, memory_order_acquire) != handle >> INDEX_BITS)
        return NULL;
    return object;
}

kpt_status kpti_handle_fail(kpt_handle handle, kpt_status status, const kpti_error *error)
{
    slot *s;
    kpti_handles_lock();
    s = slot_of(handle);
    if (s)
        s->error = *error;
    else if (handle == 0)
        process_error = *error;
    kpti_handles_unlock();
    return status;
}

/* Returns the last position at or before END where UTF-8 text can be cut without splitting a character. */
static size_t cut_before(const char *text, size_t end)
{
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    return end;
}

/* Returns the length of TEXT without a partial last character. A text that was cut to its buffer may end in
 * one. */
static size_t whole_length(const char *text)
{
    size_t length = strlen(text);
    size_t last = length ? cut_before(text, length - 1) : 0; /* the start of the last character */
    unsigned char lead = (unsigned char)text[last];
    size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    return length - last < wanted ? last : length;
}

kpt_status kpti_handle_last_error(kpt_handle handle, char *buf, uint64_t size, uint64_t *needed)
{
    kpti_error error = {"no such object: the handle was destroyed, or never made"};
    size_t length;
    slot *s;
    if (!buf && size > 0) return KPT_E_INVALID;
    kpti_handles_lock();
    s = slot_of(handle);
    if (s)
        error = s->error;
    else if (handle == 0)
        error = process_error;
    kpti_handles_unlock();
    length = whole_length(error.text);
    if (needed) *needed = length;
    if (size == 0) return KPT_OK;
    if (length >= size) length = cut_before(error.text, size - 1);
    memcpy(buf, error.text, length);
    buf[length] = 0;
    return KPT_OK;
}

/* The child has one thread, so calls of other threads never leave their objects. This function resets `inside`
 * for them. */
static void fork_in_child(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        slot *s = &slots[i];
        void *object = atomic_load_explicit(&s->object, memory_order_relaxed);
        const kpti_handle_kind *kind = atomic_load_explicit(&s->kind, memory_order_relaxed);
        kpti_assert(!object || kind);
        if (!object) continue;
        if (!pthread_equal(s->inside_of, pthread_self())) s->inside = 0;
        if (kind->forked) kind->forked(object);
    }
    kpti_handles_unlock();
}

static void watch_fork(void)
{
    (void)pthread_atfork(kpti_handles_lock, kpti_handles_unlock, fork_in_child);
}

void kpti_handles_watch_fork(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_fork);
}
