#include "hosts/torch/exporter/kernel_stacks.h"

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/u64_map.h"
#include "hosts/torch/exporter/torch_names.h"
#include "writers/annotations/library_file.h"

/* The maximum size of a text. A longer one lacks its outermost frames, since it is written for each kernel. */
enum { MAX_STACK = 16 * 1024 };

/* A Python call and its callers. Stacks with common callers share their nodes. */
typedef struct node {
    uint32_t caller; /* a node, or 0 */
    uint32_t name;
    uint32_t line;   /* 0 for the function's own line */
    uint32_t answer; /* of a watched call, or 0 */
} node;

/* A call that is or was open at the current point of the delivery. */
typedef struct frame {
    int64_t end_ns;
    node own;            /* at the line at which it (re)started; without a caller */
    uint32_t is_python;  /* otherwise it is not part of a stack */
    uint32_t calls_from; /* the line of the last call in it; 0 if unknown */
    uint32_t node;       /* at that line; 0 before it is looked up */
} frame;

typedef struct track_state {
    kpt_thread raw;
    int wanted;
    uint32_t depth; /* of the last call, + 1 */
    uint32_t open_capacity;
    frame *open; /* by depth */
} track_state;

typedef struct search {
    kpti_kineto_gpu *gpu;
    kpti_heap heap;
    kpti_torch_names names;
    track_state *track_states; /* by index */
    uint32_t track_state_count;
    kpti_u64_map
        track_state_of; /* by OS thread: the index of the last track that began there, + 1 */
    node *nodes;        /* from index 1 on */
    uint32_t node_count, node_capacity;
    kpti_u64_map node_of; /* by their contents */
    uint32_t next;        /* the next launch whose stack is needed */
} search;

/* --- nodes ------------------------------------------------------------------------------------ */

static uint64_t key_of(const node *n)
{
    uint64_t key = n->caller;
    key = kpti_hash_spread(key ^ n->name);
    key = (key ^ (key >> 29) ^ n->line) * UINT64_C(0xBF58476D1CE4E5B9);
    key = (key ^ (key >> 32) ^ n->answer) * UINT64_C(0x94D049BB133111EB);
    return key >> 1;
}

/* Returns the number of the node with these values, or 0 if there is no memory. */
static uint32_t node_with(search *s, const node *wanted)
{
    uint64_t key = key_of(wanted);
    kpti_assert(wanted->caller <= s->node_count); /* so that no chain of callers has a circle */
    for (;; key++) { /* nodes may have equal keys: the second gets the next key */
        uint32_t *number = kpti_u64_map_at(&s->node_of, key);
        if (!number) return 0;
        if (*number && memcmp(&s->nodes[*number], wanted, sizeof *wanted) == 0) return *number;
        if (*number) continue;
        if (kpti_array_reach(&s->heap, &s->nodes, &s->node_capacity, s->node_count + 1,
                             sizeof *s->nodes) != KPT_OK)
            return 0;
        *number = ++s->node_count;
        s->nodes[*number] = *wanted;
        return *number;
    }
}

/* Returns the node of a call inside CALLER. A LINE of 0 means the line where it (re)started. Returns 0 if there
 * is no memory, or no Python call at all. */
static uint32_t node_in(search *s, const frame *f, uint32_t caller, uint32_t line)
{
    node wanted = f->own;
    if (!f->is_python) return caller;
    wanted.caller = caller;
    if (line) wanted.line = line;
    return node_with(s, &wanted);
}

/* Returns the stack of a track at a time. */
static uint32_t stack_at(search *s, track_state *l, int64_t time_ns)
{
    uint32_t caller = 0;
    for (uint32_t i = 0; i < l->depth && l->open[i].end_ns > time_ns; i++) {
        frame *f = &l->open[i];
        if (i + 1 == l->depth || l->open[i + 1].end_ns <= time_ns) return node_in(s, f, caller, 0);
        if (!f->node) f->node = node_in(s, f, caller, f->calls_from);
        caller = f->node;
    }
    return caller;
}

/* --- the delivery, by start time -------------------------------------------------------------- */

/* Sets the stacks of the launches before TIME_NS. */
static void answer_before(search *s, int64_t time_ns)
{
    for (; s->next < s->gpu->launch_count; s->next++) {
        kpti_kineto_launch *launch = &s->gpu->launches[s->next];
        const uint32_t *number;
        kpti_assert(!s->next || launch->time_ns >= launch[-1].time_ns);
        if (launch->time_ns >= time_ns) return;
        number = kpti_u64_map_at(&s->track_state_of, launch->tid);
        if (number && *number)
            launch->stack = stack_at(s, &s->track_states[*number - 1], launch->time_ns);
    }
}

static kpt_status take_thread(void *ctx, const kpt_thread *thread)
{
    search *s = ctx;
    const kpti_torch_recording *r = s->names.recording;
    kpt_status status = kpti_array_reach(&s->heap, &s->track_states, &s->track_state_count,
                                         thread->index, sizeof *s->track_states);
    uint64_t python_thread;
    uint64_t own_tid;
    track_state *l;
    if (status != KPT_OK) return status;
    l = &s->track_states[thread->index];
    l->raw = *thread;
    l->wanted = r->thread_of(r->ctx, thread, &python_thread, &own_tid);
    return KPT_OK;
}

/* The OS reuses thread ids. The thread that began last has the id. */
static kpt_status begin_track(search *s, const track_state *l)
{
    uint32_t *number = kpti_u64_map_at(&s->track_state_of, l->raw.os_tid);
    if (!number) return KPT_E_MEMORY;
    *number = (uint32_t)(l - s->track_states) + 1;
    return KPT_OK;
}

static kpt_status take_call(void *ctx, const kpt_activity *a)
{
    search *s = ctx;
    track_state *l;
    frame *f;
    kpt_status status = KPT_OK;
    if (a->thread >= s->track_state_count || a->name >= s->names.raw_capacity) return KPT_E_INVALID;
    answer_before(s, a->start_ns);
    l = &s->track_states[a->thread];
    if (!l->wanted) return KPT_OK;
    if (!l->depth) status = begin_track(s, l);
    if (status == KPT_OK)
        status = kpti_array_reach(&s->heap, &l->open, &l->open_capacity, a->depth, sizeof *l->open);
    if (status != KPT_OK) return status;
    f = &l->open[a->depth];
    *f = (frame){.end_ns = a->end_ns};
    f->is_python = a->kind == KPT_KIND_PYTHON && kpti_torch_is_python(&s->names, a->name);
    f->own.name = a->name;
    f->own.line = kpti_torch_line(&s->names, &l->raw, a);
    if (a->flags & KPT_ACTIVITY_WATCHED && a->value0 < KPTI_MAX_FRAGMENTS)
        f->own.answer = (uint32_t)a->value0;
    if (a->depth) {
        l->open[a->depth - 1].calls_from = (uint32_t)a->value2;
        l->open[a->depth - 1].node = 0;
    }
    l->depth = a->depth + 1;
    return KPT_OK;
}

static kpt_status take(void *ctx, const kpt_batch *batch)
{
    search *s = ctx;
    return kpti_torch_take(&s->names, batch, take_thread, take_call, s);
}

static kpt_status deliver(search *s)
{
    kpt_status status = kpti_torch_deliver(s->names.recording, KPT_ORDER_START, 0, take, s);
    if (status == KPT_OK) answer_before(s, INT64_MAX);
    return status;
}

/* --- texts ------------------------------------------------------------------------------------ */

static kpti_fragment show(search *s, const node *n)
{
    kpti_fragment module = kpti_torch_module(&s->names, n->answer);
    return module.size ? module : kpti_torch_name_at(&s->names, n->name, n->line);
}

/* Returns the innermost frame of the user's own code, by the standalone host's rule. */
static const node *own_frame(const search *s, uint32_t stack)
{
    for (uint32_t i = stack; i; i = s->nodes[i].caller) {
        const node *n = &s->nodes[i];
        if (!n->answer && !kpti_is_library_file(s->names.raw[n->name].file)) return n;
    }
    return &s->nodes[stack];
}

/* Writes a text so that it ends at AT. Returns its start. */
static char *put_before(char *at, const char *text, size_t size)
{
    return memcpy(at - size, text, size);
}

/* Writes a stack, outermost first, backwards from END, so that the outermost frames of a long stack are
 * omitted. CAPACITY has space for the stack and one more name. */
static char *put_stack(search *s, uint32_t stack, const char *buffer, char *end)
{
    char *at = end;
    for (uint32_t i = stack; i; i = s->nodes[i].caller) {
        kpti_fragment name = show(s, &s->nodes[i]);
        if (i != stack) {
            if ((size_t)(end - at) + name.size > MAX_STACK) return put_before(at, "...;", 4);
            at = put_before(at, ";", 1);
        }
        if ((size_t)(at - buffer) < name.size) return at;
        at = put_before(at, name.text, name.size);
    }
    return at;
}

static kpt_status add_text(search *s, kpti_fragments *texts, uint32_t stack, char *buffer,
                           char *end)
{
    const char *begin = put_stack(s, stack, buffer, end);
    size_t size = (size_t)(end - begin);
    kpti_fragment own = show(s, own_frame(s, stack));
    char *text = kpti_fragments_reserve(texts, size + own.size + 64);
    char *at = text;
    if (!text) return KPT_E_MEMORY;
    at = KPTI_PUT(at, "\"launched at\": \"");
    at = kpti_put_bytes(at, own.text, own.size);
    at = KPTI_PUT(at, "\", \"" KPTI_KINETO_STACK "\": \"");
    at = KPTI_PUT(kpti_put_bytes(at, begin, size), "\"");
    return kpti_fragments_set(texts, stack, text, (size_t)(at - text), 0);
}

static kpt_status add_texts(search *s, kpti_fragments *texts)
{
    enum { CAPACITY = MAX_STACK + 3 * KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH };
    char *buffer = malloc(CAPACITY);
    kpt_status status = buffer ? KPT_OK : KPT_E_MEMORY;
    for (uint32_t i = 0; i < s->gpu->launch_count && status == KPT_OK; i++) {
        const uint32_t stack = s->gpu->launches[i].stack;
        if (stack && !kpti_fragments_get(texts, stack, (kpti_fragment){NULL, 0, 0}).text)
            status = add_text(s, texts, stack, buffer, buffer + CAPACITY);
    }
    free(buffer);
    return status;
}

/* --- all of it -------------------------------------------------------------------------------- */

static kpt_status find(kpti_kernel_stacks *stacks, const kpti_torch_recording *recording)
{
    search s;
    kpt_status status;
    memset(&s, 0, sizeof s);
    s.gpu = &stacks->gpu;
    status = kpti_torch_names_open(&s.names, recording);
    if (status == KPT_OK) status = deliver(&s);
    if (status == KPT_OK) status = add_texts(&s, &stacks->texts);
    for (uint32_t i = 0; i < s.track_state_count; i++)
        free(s.track_states[i].open);
    free(s.track_states);
    free(s.nodes);
    kpti_u64_map_free(&s.track_state_of);
    kpti_u64_map_free(&s.node_of);
    kpti_torch_names_free(&s.names);
    return status;
}

/* The launches are in time order. */
static void find_or_free(kpti_kernel_stacks *stacks, const kpti_torch_recording *recording)
{
    if (stacks->gpu.launch_count && find(stacks, recording) == KPT_OK) {
        kpti_kineto_gpu_sort(&stacks->gpu);
        stacks->found = stacks->texts.count != 0;
    }
    if (!stacks->found) kpti_kernel_stacks_free(stacks);
}

void kpti_kernel_stacks_find(kpti_kernel_stacks *stacks, const kpti_torch_recording *recording,
                             const kpti_kineto_file *file)
{
    kpti_kineto_gpu *gpu = &stacks->gpu;
    if (!file->has_devices) return;
    if (kpti_kineto_gpu_read(gpu, file) == 0 && gpu->work_count)
        find_or_free(stacks, recording);
    else
        kpti_kernel_stacks_free(stacks);
}

void kpti_kernel_stacks_find_in_log(kpti_kernel_stacks *stacks,
                                    const kpti_torch_recording *recording, const kpti_gpu_log *log)
{
    kpti_gpu_cursor cursor = {.log = log};
    const kpti_gpu_entry *entry;
    kpt_status status = KPT_OK;
    while (status == KPT_OK && (entry = kpti_gpu_next(&cursor))) {
        const kpt_gpu_event *const e = &entry->event;
        const kpti_kineto_launch launch = {e->start_ns, e->correlation, (uint32_t)e->os_tid, 0};
        if (kpti_gpu_is_call(e->kind)) status = kpti_kineto_gpu_add(&stacks->gpu, &launch);
    }
    kpti_kineto_gpu_by_time(&stacks->gpu);
    if (status == KPT_OK)
        find_or_free(stacks, recording);
    else
        kpti_kernel_stacks_free(stacks);
}

kpti_fragment kpti_kernel_stacks_text(const kpti_kernel_stacks *stacks, uint64_t correlation)
{
    const kpti_fragment none = {NULL, 0, 0};
    const uint32_t stack =
        stacks->found && correlation ? kpti_kineto_gpu_stack(&stacks->gpu, correlation) : 0;
    return stack ? kpti_fragments_get(&stacks->texts, stack, none) : none;
}

void kpti_kernel_stacks_free(kpti_kernel_stacks *stacks)
{
    kpti_kineto_gpu_free(&stacks->gpu);
    kpti_fragments_free(&stacks->texts);
}
