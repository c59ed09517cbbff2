#include "hosts/torch/exporter/torch_calls.h"

#include <unistd.h>

#include "hosts/torch/exporter/torch_names.h"

/* A call that is open at the current point of the delivery, for the call stacks of the calls in it. */
typedef struct frame {
    size_t at; /* position of its name in the track's text */
    size_t size;
} frame;

/* A thread. */
typedef struct track_state {
    kpt_thread raw;
    int wanted;
    uint64_t python_thread;     /* torch's number in "Python thread" */
    uint64_t collection;        /* the id of the last collection, which is no call for torch … */
    uint64_t collection_parent; /* … so calls inside it belong to the call around it */
    frame *open;                /* by depth */
    uint64_t open_capacity;
    char *text;
    uint64_t text_capacity;
} track_state;

struct kpti_torch_calls {
    const kpti_torch_recording *recording;
    kpti_chrome_events *events;
    uint32_t flags;
    uint32_t torch_has; /* KPTI_TORCH_HANDED_* */
    uint64_t count;
    kpti_torch_names names;
    kpti_fragments threads;    /* in the form that kpti_chrome_put needs */
    track_state *track_states; /* by index */
    uint32_t track_state_count;
    char *more;
};

enum { MAX_STACK = KPTI_CHROME_MAX_MORE - 1024 };

/* --- threads ---------------------------------------------------------------------------------- */

kpt_status kpti_torch_calls_thread(void *ctx, const kpt_thread *thread)
{
    kpti_torch_calls *c = ctx;
    const kpti_torch_recording *r = c->recording;
    kpt_status status = kpti_array_reach(&c->threads.heap, &c->track_states, &c->track_state_count,
                                         thread->index, sizeof *c->track_states);
    uint64_t own_tid = 0;
    track_state *l;
    if (status != KPT_OK) return status;
    l = &c->track_states[thread->index];
    l->raw = *thread;
    l->wanted = r->thread_of(r->ctx, thread, &l->python_thread, &own_tid);
    return kpti_chrome_add_thread(&c->threads, thread->index, (uint64_t)getpid(),
                                  c->flags & KPTI_CALLS_OF_LIST ? own_tid : thread->os_tid);
}

/* --- arguments -------------------------------------------------------------------------------- */

/* Stores NAME as the open call at this depth. */
static kpt_status push(track_state *l, uint32_t depth, kpti_fragment name)
{
    frame before = depth && depth <= l->open_capacity ? l->open[depth - 1] : (frame){0, 0};
    frame own = {before.at + before.size, name.size};
    if (!kpti_array_reserve(&kpti_malloc_heap, &l->open, &l->open_capacity, (uint64_t)depth + 1,
                            sizeof *l->open) ||
        !kpti_array_reserve(&kpti_malloc_heap, &l->text, &l->text_capacity, own.at + own.size, 1))
        return KPT_E_MEMORY;
    memcpy(l->text + own.at, name.text, name.size);
    l->open[depth] = own;
    return KPT_OK;
}

/* Writes a stack, innermost first. The outermost frames of a long stack are omitted. */
static char *put_stack(char *at, const track_state *l, uint32_t depth)
{
    const char *max = at + MAX_STACK;
    at = KPTI_PUT(at, ",\"Call stack\":\"");
    for (uint32_t i = depth; i-- > 0 && (size_t)(max - at) > l->open[i].size + 2;) {
        memcpy(at, l->text + l->open[i].at, l->open[i].size);
        at += l->open[i].size;
        *at++ = ';';
    }
    *at++ = '"';
    return at;
}

static kpti_fragment arguments(kpti_torch_calls *c, const track_state *l, const kpt_activity *a,
                               kpti_fragment module)
{
    char *at = c->more;
    if (c->flags & KPTI_CALLS_VERBOSE) {
        at = kpti_put_u64(KPTI_PUT(at, ",\"Python thread\":"), l->python_thread);
        if (a->depth) at = put_stack(at, l, a->depth);
    }
    if (module.size) at = kpti_put_u64(KPTI_PUT(at, ",\"Python module id\":"), module.note);
    if (a->flags & KPT_ACTIVITY_CLAMPED) at = KPTI_PUT(at, ",\"clamped\":true");
    if (a->flags & KPT_ACTIVITY_CONTINUED) at = KPTI_PUT(at, ",\"continued\":true");
    return (kpti_fragment){c->more, (uint32_t)(at - c->more), 0};
}

/* --- calls ------------------------------------------------------------------------------------ */

/* torch has no ids for collections. */
static void put_collection(kpti_torch_calls *c, const kpt_activity *a)
{
    kpti_chrome_events *e = c->events;
    kpti_fragment thread = kpti_fragments_get(&c->threads, a->thread, kpti_chrome_no_thread);
    char *at = kpti_out_reserve(e->out, KPTI_CHROME_MAX_REST);
    at = KPTI_PUT(at, ",\n{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"Python GC");
    at = kpti_fragment_put(at, thread);
    at = kpti_put_us_between(at, e->base_ns, a->start_ns);
    at = kpti_put_us_between(KPTI_PUT(at, ",\"dur\":"), a->start_ns, a->end_ns);
    at = kpti_put_u64(KPTI_PUT(at, ",\"args\":{\"Ev Idx\":"), e->next_index++);
    kpti_out_wrote(e->out, KPTI_PUT(at, "}}"));
    c->count++;
}

static kpt_status take_collection(kpti_torch_calls *c, track_state *l, const kpt_activity *a)
{
    l->collection = a->id;
    l->collection_parent = a->parent_id;
    if (c->torch_has == KPTI_TORCH_HANDED_NONE) put_collection(c, a);
    if (!(c->flags & KPTI_CALLS_VERBOSE)) return KPT_OK;
    return push(l, a->depth, (kpti_fragment){"Python GC", sizeof "Python GC" - 1, 0});
}

kpt_status kpti_torch_calls_call(void *ctx, const kpt_activity *a)
{
    kpti_torch_calls *c = ctx;
    kpt_activity adopted;
    kpt_status status = KPT_OK;
    track_state *l;
    kpti_torch_shown call;
    if (a->thread >= c->track_state_count || a->name >= c->names.raw_capacity) return KPT_E_INVALID;
    l = &c->track_states[a->thread];
    if (!l->wanted) return KPT_OK;
    if (a->kind == KPT_KIND_GC) return take_collection(c, l, a);
    call = kpti_torch_show(&c->names, &l->raw, a);
    if (c->flags & KPTI_CALLS_VERBOSE) status = push(l, a->depth, call.name);
    if (status != KPT_OK) return status;
    if (c->torch_has == KPTI_TORCH_HANDED_MARKED &&
        a->flags & (KPT_ACTIVITY_MARKED | KPT_ACTIVITY_WATCHED))
        return KPT_OK;
    if (l->collection && a->parent_id == l->collection) {
        adopted = *a;
        adopted.parent_id = l->collection_parent;
        a = &adopted;
    }
    kpti_chrome_put(c->events, a, call.name,
                    kpti_fragments_get(&c->threads, a->thread, kpti_chrome_no_thread),
                    arguments(c, l, a, call.module));
    c->count++;
    return KPT_OK;
}

static kpt_status take(void *ctx, const kpt_batch *batch)
{
    kpti_torch_calls *c = ctx;
    const kpt_status status =
        kpti_torch_take(&c->names, batch, kpti_torch_calls_thread, kpti_torch_calls_call, c);
    return status == KPT_OK && kpti_out_error(c->events->out) ? KPT_E_IO : status;
}

kpt_status kpti_torch_calls_name(kpti_torch_calls *c, const kpt_name *name)
{
    return kpti_torch_names_take(&c->names, name);
}

kpti_fragment kpti_torch_calls_shown(const kpti_torch_calls *c, uint32_t name)
{
    return kpti_fragments_get(&c->names.names, name, kpti_chrome_no_name);
}

kpti_fragment kpti_torch_calls_place(const kpti_torch_calls *c, uint32_t thread)
{
    return kpti_fragments_get(&c->threads, thread, kpti_chrome_no_thread);
}

void kpti_torch_calls_free(kpti_torch_calls *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->track_state_count; i++) {
        free(c->track_states[i].open);
        free(c->track_states[i].text);
    }
    free(c->track_states);
    free(c->more);
    kpti_torch_names_free(&c->names);
    kpti_fragments_free(&c->threads);
    free(c);
}

kpt_status kpti_torch_calls_open(const kpti_torch_recording *recording, uint32_t flags,
                                 kpti_chrome_events *events, kpti_torch_calls **out)
{
    kpti_torch_calls *const c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return KPT_E_MEMORY;
    c->recording = recording;
    c->events = events;
    c->flags = flags;
    c->torch_has = kpti_torch_has(recording, flags);
    c->more = malloc(KPTI_CHROME_MAX_MORE);
    if (kpti_torch_names_open(&c->names, recording) == KPT_OK && c->more) {
        *out = c;
        return KPT_OK;
    }
    kpti_torch_calls_free(c);
    return KPT_E_MEMORY;
}

kpt_status kpti_torch_calls_write(const kpti_torch_recording *recording, uint32_t flags,
                                  kpti_chrome_events *events, uint64_t *count)
{
    kpti_torch_calls *calls;
    kpt_status status = kpti_torch_calls_open(recording, flags, events, &calls);
    if (status == KPT_OK) {
        status = kpti_torch_deliver(recording, KPT_ORDER_START, 0, take, calls);
        *count = calls->count;
    }
    kpti_torch_calls_free(calls);
    return status;
}
