/* sample_handles.c: the list of live objects, with their handles and last errors. A handle is the next
 * number, so no handle is used twice. One lock guards the list, and is never held while foreign code runs;
 * fork takes it, so that the child finds the list consistent. */
#include "tests/plugins/sample.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sample_object *objects;
static kpt_handle last_handle;
static kpt_handle given_back;        /* for R313 only */
static const char *entry_error = ""; /* last_error of handle 0 */

void sample_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sample_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static sample_object *find_locked(kpt_handle handle)
{
    sample_object *object = objects;
    while (object && object->handle != handle)
        object = object->next;
    return object;
}

static sample_object *find_kind_locked(kpt_handle handle, uint32_t kind)
{
    sample_object *object = find_locked(handle);
    return object && object->kind == kind ? object : NULL;
}

void sample_adopt(sample_object *object, uint32_t kind, sample_binding *binding, const char *why)
{
    object->kind = kind;
    object->binding = binding;
    object->error = why;
    object->maker = pthread_self();
    sample_lock();
    object->handle = ++last_handle;
    if (wrong("R313") && kind == KPT_FACTORY_TRACER && given_back) {
        object->handle = given_back;
        given_back = 0;
    }
    object->next = objects;
    objects = object;
    sample_unlock();
}

kpt_status sample_enter(kpt_handle handle, uint32_t kind, sample_object **out)
{
    kpt_status status = KPT_OK;
    sample_object *object;
    sample_lock();
    object = find_kind_locked(handle, kind);
    if (!object) {
        status = KPT_E_HANDLE;
    } else if (object->inside) {
        object->error = "another call is inside this object";
        status = KPT_E_BUSY;
    } else {
        object->inside = 1;
        object->inside_of = pthread_self();
    }
    sample_unlock();
    *out = status == KPT_OK ? object : NULL;
    return status;
}

kpt_status sample_leave(sample_object *object, kpt_status status)
{
    sample_lock();
    object->inside = 0;
    sample_unlock();
    return status;
}

kpt_status sample_end(sample_object *object)
{
    kpt_status status = KPT_OK;
    sample_object **link = &objects;
    sample_lock();
    object->inside = 0;
    if (object->users > 0) {
        object->error = "objects that were made through this host are alive";
        status = KPT_E_STATE;
    } else {
        while (*link != object)
            link = &(*link)->next;
        *link = object->next;
        if (object->kind == KPT_FACTORY_TRACER) given_back = object->handle;
    }
    sample_unlock();
    return status;
}

sample_object *sample_use(kpt_handle handle, uint32_t kind)
{
    sample_object *object;
    sample_lock();
    object = find_kind_locked(handle, kind);
    if (object) object->users++;
    sample_unlock();
    return object;
}

void sample_release(sample_object *object)
{
    sample_lock();
    object->users--;
    sample_unlock();
}

uint32_t sample_count_mine(const sample_binding *binding, uint32_t kind)
{
    uint32_t count = 0;
    sample_lock();
    for (sample_object *object = objects; object; object = object->next)
        count += object->binding == binding && object->kind == kind &&
                 pthread_equal(object->maker, pthread_self());
    sample_unlock();
    return count;
}

int sample_is_gone(kpt_handle handle)
{
    int gone;
    sample_lock();
    gone = handle > 0 && handle <= last_handle && !find_locked(handle);
    sample_unlock();
    return gone;
}

kpt_status sample_refuse(sample_object *object, kpt_status status, const char *text)
{
    const char *rule = !object ? "R129" : object->kind == SAMPLE_BOND ? "R222" : "R401";
    if (wrong(rule)) text = "";
    sample_lock();
    if (object)
        object->error = text;
    else
        entry_error = text;
    sample_unlock();
    return status;
}

/* All texts are literals and ASCII: they can be read after the lock, and cut anywhere. */
kpt_status sample_last_error(kpt_handle handle, char *buf, uint64_t size, uint64_t *needed)
{
    const char *text = wrong("R405") ? "" : "there is no such object: it is gone, or never was";
    const sample_object *object;
    uint64_t length;
    if (!buf && size > 0) return wrong("R404") ? KPT_OK : KPT_E_INVALID;
    sample_lock();
    object = find_locked(handle);
    if (object)
        text = object->error;
    else if (handle == 0)
        text = entry_error;
    sample_unlock();
    length = strlen(text);
    if (needed && !(wrong("R403") && !buf)) *needed = length;
    if (size == 0) return KPT_OK;
    if (length >= size) {
        length = size - 1;
        if (wrong("R402")) length++;
    }
    memcpy(buf, text, length);
    buf[length] = 0;
    return KPT_OK;
}

/* The child has one thread: whoever else was inside an object will never leave it. */
static void after_fork_in_child(void)
{
    for (sample_object *object = objects; object; object = object->next) {
        if (!pthread_equal(object->inside_of, pthread_self())) object->inside = 0;
        if (object->kind == KPT_FACTORY_TRACER) sample_tracer_forked(object);
    }
    sample_unlock();
}

static void after_fork_in_parent(void)
{
    for (sample_object *object = objects; wrong("R802") && object; object = object->next)
        if (object->kind == KPT_FACTORY_TRACER) sample_tracer_forked(object);
    sample_unlock();
}

static void watch_fork(void)
{
    (void)pthread_atfork(sample_lock, after_fork_in_parent, after_fork_in_child);
}

void sample_watch_fork(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_fork);
}
