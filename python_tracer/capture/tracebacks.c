#include "python_tracer/capture/tracebacks.h"

#include "core/callstacks/code_location.h"
#include "core/callstacks/function_table.h"
#include "core/callstacks/native_frames.h"
#include "core/callstacks/stack_trie.h"
#include "core/callstacks/symbolize.h"
#include "python_tracer/capture/stack_capture.h"
#include "python_tracer/capture/thread_capture.h"
#include "python_tracer/state/fork_watch.h"

/* Maximum number of frames of the host's own language. Deeper stacks are cut, as native ones are. */
enum { MAX_SCRIPT = 512 };

typedef struct tracebacks {
    const kpti_env *env;
    kpt_tracebacks_args args;
} tracebacks;

static kpt_status make(const kpti_env *env, const kpt_tracebacks_args *args, void **self,
                       kpti_error *error)
{
    tracebacks *t = kpti_alloc(env, sizeof *t);
    if (!t) return kpti_fail(error, KPT_E_MEMORY, "no memory for tracebacks");
    t->env = env;
    t->args = *args;
    kpti_fork_watch();
    kpti_capture_prepare();
    *self = t;
    return KPT_OK;
}

/* Returns the stack of COUNT code locations, innermost first, with one holder. */
static uint32_t stack_of(const uint32_t *locations, uint32_t count, uint32_t *flags)
{
    uint32_t stack = 0;
    kpti_stacks_lock();
    while (count > 0) {
        const uint32_t on = kpti_stack_on_locked(stack, locations[count - 1]);
        if (!on) {
            *flags |= KPT_TRACEBACK_CUT;
            break;
        }
        stack = on;
        count--;
    }
    kpti_stack_retain(stack);
    kpti_stacks_unlock();
    return stack;
}

/* Frames reported by the host. */
typedef struct reported_frames {
    uint32_t locations[MAX_SCRIPT];
    uint32_t count;
    uint32_t max;
    uint32_t flags;
} reported_frames;

static void add_reported(void *ctx, kpt_str name, kpt_str file, uint32_t line)
{
    reported_frames *t = ctx;
    const uint32_t location =
        t->count < t->max ? kpti_code_location_reported(KPT_SYMBOL_SCRIPT, name, file, line) : 0;
    if (location)
        t->locations[t->count++] = location;
    else
        t->flags |= KPT_TRACEBACK_CUT;
}

static uint32_t min(uint32_t depth, uint32_t max)
{
    return depth && depth < max ? depth : max;
}

static uint32_t gather_script(const tracebacks *self, uint32_t depth, uint32_t *flags)
{
    reported_frames t = {.max = min(depth, MAX_SCRIPT)};
    if (!self->args.script_frames) return 0;
    self->args.script_frames(self->args.script_ctx, add_reported, &t);
    *flags |= t.flags;
    return stack_of(t.locations, t.count, flags);
}

static uint32_t gather_native(uint32_t depth, uint32_t *flags)
{
    uint64_t addresses[KPTI_MAX_NATIVE];
    uint32_t locations[KPTI_MAX_NATIVE];
    const uint32_t seen = kpti_native_walk(addresses);
    const uint32_t count = min(depth, seen);
    uint32_t kept = 0;
    if (count < seen || seen == KPTI_MAX_NATIVE) *flags |= KPT_TRACEBACK_CUT;
    for (uint32_t i = 0; i < count; i++) {
        kpti_code_location location = {.kind = KPT_SYMBOL_NATIVE, .where = addresses[i]};
        location.column = location.end_column = KPT_NO_COLUMN;
        locations[kept] = kpti_code_location_intern(&location);
        kept += locations[kept] != 0;
    }
    if (kept < count) *flags |= KPT_TRACEBACK_CUT;
    return stack_of(locations, kept, flags);
}

static void gather(void *self, uint32_t what, uint32_t depth, kpt_traceback *out)
{
    kpt_traceback t = {0};
    if (what & KPT_GATHER_PYTHON)
        t.python = kpti_capture_python(depth, (what & KPT_GATHER_WAIT) != 0, &t.flags);
    if (what & KPT_GATHER_SCRIPT) t.script = gather_script(self, depth, &t.flags);
    if (what & KPT_GATHER_NATIVE) t.native = gather_native(depth, &t.flags);
    *out = t;
}

static void retain(void *self, const kpt_traceback *t, uint64_t count)
{
    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        kpti_stack_retain(t[i].python);
        kpti_stack_retain(t[i].script);
        kpti_stack_retain(t[i].native);
    }
}

static void release(void *self, kpt_traceback *t, uint64_t count)
{
    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        const kpt_traceback ended = t[i];
        t[i] = (kpt_traceback){0};
        kpti_stack_release(ended.python);
        kpti_stack_release(ended.script);
        kpti_stack_release(ended.native);
    }
}

static kpti_symbolizer symbolizer(const tracebacks *t, kpt_symbols_fn sink, void *sink_ctx)
{
    return (kpti_symbolizer){t->env, t->args.generated, t->args.generated_ctx, sink, sink_ctx};
}

static kpt_status symbolize(void *self, const kpt_traceback *t, uint64_t count, kpt_symbols_fn sink,
                            void *sink_ctx, kpti_error *error)
{
    const kpti_symbolizer with = symbolizer(self, sink, sink_ctx);
    return kpti_symbolize(&with, t, count, error);
}

static kpt_status symbolize_frames(void *self, const uint32_t *frames, uint64_t count,
                                   kpt_symbols_fn sink, void *sink_ctx, kpti_error *error)
{
    const kpti_symbolizer with = symbolizer(self, sink, sink_ctx);
    return kpti_symbolize_locations(&with, frames, count, error);
}

static uint64_t get_frames(void *self, const kpt_traceback *t, uint32_t *out, uint64_t capacity)
{
    uint64_t count = 0;
    (void)self;
    for (uint32_t stack = t->python; stack; stack = kpti_stack_below(stack)) {
        if (count < capacity) out[count] = kpti_stack_place(stack);
        count++;
    }
    return count;
}

static uint64_t free_dead(void *self, uint64_t max)
{
    enum { AT_ONCE = 256 }; /* other threads may wait for the lock */
    uint64_t left = max ? max : UINT64_MAX;
    (void)self;
    if (!max) kpti_thread_capture_forget();
    while (left > 0 && kpti_stacks_have_dead()) {
        const uint64_t now = left < AT_ONCE ? left : AT_ONCE;
        kpti_stacks_lock();
        kpti_stacks_free_dead_locked(now);
        kpti_stacks_unlock();
        left -= now;
    }
    return kpti_stacks_counts().dead;
}

static void get_stats(void *self, kpt_traceback_stats *out)
{
    const kpti_stacks_count stacks = kpti_stacks_counts();
    (void)self;
    out->stacks = stacks.nodes;
    out->dead = stacks.dead;
    out->places = kpti_code_location_end() - 1;
    out->bytes_held = stacks.bytes + kpti_code_location_bytes() + kpti_function_bytes();
}

static void destroy(void *self)
{
    tracebacks *t = self;
    kpti_free(t->env, t, sizeof *t);
}

const kpti_tracebacks_impl kpti_python_tracebacks = {
    .make = make,
    .gather = gather,
    .retain = retain,
    .release = release,
    .symbolize = symbolize,
    .get_frames = get_frames,
    .symbolize_frames = symbolize_frames,
    .free_dead = free_dead,
    .get_stats = get_stats,
    .destroy = destroy,
};
