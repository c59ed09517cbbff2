/* sample_traceback.c: the extension KPT_EXT_TRACEBACK. No call enters an object exclusively: calls only use
 * it, and their shared state is guarded by the lock, which is never held while the host's functions run. */
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "tests/plugins/sample_traceback.h"

enum { ALL_BITS = KPT_GATHER_PYTHON | KPT_GATHER_SCRIPT | KPT_GATHER_NATIVE | KPT_GATHER_WAIT };

static sample_tracebacks *use(kpt_handle self)
{
    return (sample_tracebacks *)sample_use(self, SAMPLE_TRACEBACKS);
}

static kpt_status done(sample_tracebacks *t, kpt_status status)
{
    sample_release(&t->object);
    return status;
}

static kpt_status refuse(sample_tracebacks *t, kpt_status status, const char *text)
{
    return done(t, sample_refuse(&t->object, status, text));
}

/* For R798: an object that only one thread at a time may use. */
static kpt_status gather_alone(sample_tracebacks *t, uint32_t what, uint32_t depth,
                               kpt_traceback *out)
{
    static const struct timespec a_moment = {0, 10000};
    static atomic_int inside;
    const int alone = atomic_fetch_add(&inside, 1) == 0;
    if (alone) {
        sample_gather(t, what, depth, out);
        (void)nanosleep(&a_moment, NULL);
    }
    (void)atomic_fetch_sub(&inside, 1);
    return alone ? KPT_OK : KPT_E_BUSY;
}

static kpt_status gather(kpt_handle self, uint32_t what, uint32_t depth, kpt_traceback *out)
{
    const int is_known = !(what & ~(uint32_t)ALL_BITS);
    sample_tracebacks *t = use(self);
    if (out && (is_known || !wrong("R782"))) *out = (kpt_traceback){0};
    if (!t) return KPT_E_HANDLE;
    if (!out) return done(t, KPT_E_INVALID);
    if (!is_known) return done(t, KPT_E_UNSUPPORTED);
    if (wrong("R798")) return done(t, gather_alone(t, what, depth, out));
    sample_gather(t, what, depth, out);
    return done(t, KPT_OK);
}

static kpt_status retain(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count)
{
    sample_tracebacks *t = use(self);
    if (!t) return KPT_E_HANDLE;
    if (count && !tracebacks) return done(t, KPT_E_INVALID);
    sample_lock();
    for (uint64_t i = 0; i < count && !wrong("R787"); i++) {
        sample_retain_stack_locked(tracebacks[i].python);
        sample_retain_stack_locked(tracebacks[i].script);
        sample_retain_stack_locked(tracebacks[i].native);
    }
    sample_unlock();
    return done(t, KPT_OK);
}

static kpt_status release(kpt_handle self, kpt_traceback *tracebacks, uint64_t count)
{
    sample_tracebacks *t = use(self);
    if (!t) return wrong("R781") ? KPT_OK : KPT_E_HANDLE;
    if (count && !tracebacks) return done(t, KPT_E_INVALID);
    sample_lock();
    for (uint64_t i = 0; i < count; i++) {
        sample_release_stack_locked(tracebacks[i].python);
        sample_release_stack_locked(tracebacks[i].script);
        sample_release_stack_locked(tracebacks[i].native);
        tracebacks[i] = (kpt_traceback){0};
    }
    sample_unlock();
    return done(t, KPT_OK);
}

/* Appends a stack's places to FLAT; in reverse for the wrong variants. */
static void flatten_locked(sample_flat *flat, uint32_t stack, int backwards)
{
    uint32_t places[SAMPLE_DEPTH];
    const uint32_t count = sample_unwind_locked(stack, places);
    for (uint32_t i = 0; i < count; i++)
        flat->places[flat->place_count++] = places[backwards ? count - 1 - i : i];
}

/* Script frames are first, then Python's, then native ones, as one interpreter runs within the other. */
static void flatten_all(sample_flat *flat, const kpt_traceback *tracebacks, uint64_t count)
{
    sample_lock();
    for (uint64_t i = 0; i < count; i++) {
        const kpt_traceback *t = &tracebacks[i];
        uint64_t same = 0;
        while (memcmp(&tracebacks[same], t, sizeof *t) != 0)
            same++;
        flat->same[i] = same;
        flat->spans[i].first = flat->place_count;
        flatten_locked(flat, t->script, wrong("R785"));
        flatten_locked(flat, t->python, t->native && wrong("R784"));
        flatten_locked(flat, t->native, 0);
        flat->spans[i].count = flat->place_count - flat->spans[i].first;
    }
    flat->span_count = count;
    sample_unlock();
}

static kpt_status show(sample_tracebacks *t, sample_flat *flat, kpt_symbols_fn sink, void *sink_ctx)
{
    kpt_status status = sample_show(flat, &t->args, sink, sink_ctx);
    sample_flat_free(flat);
    if (status != KPT_OK) return refuse(t, status, "no memory, or the sink did not want it");
    return done(t, KPT_OK);
}

static kpt_status symbolize(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count,
                            kpt_symbols_fn sink, void *sink_ctx)
{
    enum { KINDS = 3 };
    sample_tracebacks *t = use(self);
    sample_flat flat;
    if (!t) return KPT_E_HANDLE;
    if (!sink || (count && !tracebacks))
        return refuse(t, KPT_E_INVALID, "symbolize: there is no sink, or are no tracebacks");
    if (sample_flat_make(&flat, count, KINDS * SAMPLE_DEPTH) != KPT_OK)
        return refuse(t, KPT_E_MEMORY, "symbolize: no memory");
    flatten_all(&flat, tracebacks, count);
    if (wrong("R799") && t->object.state != (uint32_t)getpid())
        memset(flat.spans, 0, count * sizeof *flat.spans);
    return show(t, &flat, sink, sink_ctx);
}

static kpt_status get_frames(kpt_handle self, const kpt_traceback *traceback, uint32_t *out,
                             uint64_t capacity, uint64_t *count)
{
    sample_tracebacks *t = use(self);
    uint32_t places[SAMPLE_DEPTH];
    uint32_t all;
    if (!t) return KPT_E_HANDLE;
    if (!traceback || !count || (capacity && !out))
        return refuse(t, KPT_E_INVALID, "get_frames: something is NULL");
    sample_lock();
    all = sample_unwind_locked(traceback->python, places);
    sample_unlock();
    for (uint32_t i = 0; i < all && i < capacity; i++)
        out[i] = places[i];
    *count = wrong("R790") && capacity && all > capacity ? capacity : all;
    return done(t, KPT_OK);
}

static int take_numbers(sample_flat *flat, const uint32_t *numbers, uint64_t count)
{
    int known = 1;
    sample_lock();
    for (uint64_t i = 0; i < count; i++) {
        const kpt_symbol *symbol = sample_symbol_locked(numbers[i]);
        const int is_given = symbol && symbol->kind == KPT_SYMBOL_PYTHON;
        known &= is_given || wrong("R791");
        flat->same[i] = i;
        flat->spans[i] = (kpt_symbol_span){flat->place_count, (uint64_t)is_given};
        if (is_given) flat->places[flat->place_count++] = numbers[i];
    }
    flat->span_count = count;
    sample_unlock();
    return known;
}

static kpt_status symbolize_frames(kpt_handle self, const uint32_t *numbers, uint64_t count,
                                   kpt_symbols_fn sink, void *sink_ctx)
{
    sample_tracebacks *t = use(self);
    sample_flat flat;
    if (!t) return KPT_E_HANDLE;
    if (!sink || (count && !numbers))
        return refuse(t, KPT_E_INVALID, "symbolize_frames: there is no sink, or are no numbers");
    if (sample_flat_make(&flat, count, 1) != KPT_OK)
        return refuse(t, KPT_E_MEMORY, "symbolize_frames: no memory");
    if (!take_numbers(&flat, numbers, count)) {
        sample_flat_free(&flat);
        return refuse(t, KPT_E_INVALID, "symbolize_frames: a number was never given");
    }
    return show(t, &flat, sink, sink_ctx);
}

/* There is no Python object to visit. */
static kpt_status traverse(kpt_handle self, const kpt_traceback *traceback, kpt_visit_fn visit,
                           void *visit_ctx)
{
    sample_tracebacks *t = use(self);
    (void)visit_ctx;
    if (!t) return KPT_E_HANDLE;
    if (!traceback || !visit) return refuse(t, KPT_E_INVALID, "traverse: something is NULL");
    return done(t, KPT_OK);
}

static kpt_status clear(kpt_handle self, kpt_traceback *traceback)
{
    sample_tracebacks *t = use(self);
    if (!t) return KPT_E_HANDLE;
    if (!traceback) return refuse(t, KPT_E_INVALID, "clear: traceback is NULL");
    if (wrong("R793")) *traceback = (kpt_traceback){0};
    return done(t, KPT_OK);
}

static void count_stacks(kpt_traceback_stats *stats)
{
    KPT_INIT(stats);
    sample_lock();
    sample_count_stacks_locked(stats);
    sample_unlock();
}

static kpt_status free_dead(kpt_handle self, uint64_t most, uint64_t *left)
{
    sample_tracebacks *t = use(self);
    kpt_traceback_stats stats;
    if (!t) return KPT_E_HANDLE;
    sample_lock();
    if (!wrong("R794")) (void)sample_free_stacks_locked(most);
    sample_unlock();
    count_stacks(&stats);
    if (left) *left = stats.dead;
    return done(t, KPT_OK);
}

static kpt_status get_stats(kpt_handle self, kpt_traceback_stats *out)
{
    static const sample_layout layout = {sizeof(kpt_traceback_stats), KPT_TRACEBACK_STATS_V1_SIZE,
                                         NULL, "R795", NULL};
    sample_tracebacks *t = use(self);
    kpt_traceback_stats stats;
    kpt_status status;
    if (!t) return KPT_E_HANDLE;
    status = sample_check(out, &layout);
    if (status != KPT_OK) return refuse(t, status, "get_stats: out is NULL, or below its V1 size");
    count_stacks(&stats);
    sample_write(out, &layout, &stats);
    return done(t, KPT_OK);
}

static kpt_status destroy(kpt_handle self)
{
    return sample_destroy(&sample_tracebacks_product, self);
}

static const kpt_tracebacks_ops ops = {
    .struct_size = sizeof ops,
    .gather = gather,
    .retain = retain,
    .release = release,
    .symbolize = symbolize,
    .get_frames = get_frames,
    .symbolize_frames = symbolize_frames,
    .traverse = traverse,
    .clear = clear,
    .free_dead = free_dead,
    .get_stats = get_stats,
    .last_error = sample_last_error,
    .destroy = destroy,
};

static kpt_status check(sample_binding *binding, const void *args)
{
    if (((const kpt_tracebacks_args *)args)->flags && !wrong("R780"))
        return sample_refuse(&binding->object, KPT_E_UNSUPPORTED, "there are unknown flags");
    return KPT_OK;
}

static void begin(sample_object *object, const void *args)
{
    object->state = (uint32_t)getpid();
    memcpy(&((sample_tracebacks *)object)->args, args, sizeof(kpt_tracebacks_args));
}

const sample_class sample_tracebacks_product = {
    .kind = SAMPLE_TRACEBACKS,
    .why = "",
    .args = {sizeof(kpt_tracebacks_args), KPT_TRACEBACKS_ARGS_V1_SIZE, NULL, NULL, NULL},
    .out = {sizeof(kpt_tracebacks), KPT_TRACEBACKS_V1_SIZE, NULL, NULL, NULL},
    .ops = &ops,
    .ops_v1_size = KPT_TRACEBACKS_OPS_V1_SIZE,
    .object_bytes = sizeof(sample_tracebacks),
    .check = check,
    .begin = begin,
};

static kpt_status make(kpt_handle plugin, const kpt_tracebacks_args *args, kpt_tracebacks *out)
{
    sample_object *binding = sample_use(plugin, SAMPLE_BOND);
    if (!binding) return KPT_E_HANDLE;
    sample_release(binding);
    return sample_make(&sample_tracebacks_product, (void *)(uintptr_t)plugin, args, out);
}

const kpt_traceback_maker sample_traceback_maker = {sizeof sample_traceback_maker, 0, make};
