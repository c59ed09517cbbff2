/* sample_gather.c: gathers the stack of a thread: the frames that the host's script_frames reports, and
 * fixed frames for Python and for native code. */
#include "tests/plugins/sample_traceback.h"

enum { FREED_ON_THE_WAY = 8 };

/* Literals, innermost first; their sizes are computed when they are gathered. */
static const kpt_symbol python_frames[] = {
    {{"inner", 0}, {0}, {"<string>", 0}, 0, KPT_SYMBOL_PYTHON, 1, 2, 2, 4, 10},
    {{"outer", 0}, {0}, {"<string>", 0}, 0, KPT_SYMBOL_PYTHON, 3, 4, 4, 4, 11},
    {{"<module>", 0}, {0}, {"<string>", 0}, 0, KPT_SYMBOL_PYTHON, 1, 5, 5, 0, 7},
};
static const kpt_symbol native_frames[] = {
    {.name = {"sample_eval", 0}, .file = {"sample.so", 0}, .address = 4096},
    {.name = {"main", 0}, .file = {"sample.so", 0}, .address = 8192},
};

/* The innermost frames of a kind, before they are added to the tree. */
typedef struct frames {
    uint32_t places[SAMPLE_DEPTH];
    uint32_t count;
    uint32_t most;
    int cut;
} frames;

static void add_frame(frames *f, const kpt_symbol *symbol)
{
    uint32_t place = 0;
    if (f->count < f->most) {
        sample_lock();
        place = sample_place_locked(symbol);
        sample_unlock();
    }
    if (place)
        f->places[f->count++] = place;
    else
        f->cut = 1;
}

static void add_script(void *ctx, kpt_str name, kpt_str file, uint32_t line)
{
    kpt_symbol symbol = {.name = name, .file = file, .kind = KPT_SYMBOL_SCRIPT, .line = line};
    symbol.column = symbol.end_column = KPT_NO_COLUMN;
    add_frame(ctx, &symbol);
}

static void add_literals(frames *f, const kpt_symbol *literals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        kpt_symbol symbol = literals[i];
        symbol.name = kpt_str_of(symbol.name.data);
        symbol.file = kpt_str_of(symbol.file.data);
        if (symbol.address) {
            symbol.kind = KPT_SYMBOL_NATIVE;
            symbol.column = symbol.end_column = KPT_NO_COLUMN;
        }
        add_frame(f, &symbol);
    }
}

/* The simulated Python has one thread: the thread that made the object. */
static int is_pythons(const sample_tracebacks *t, uint32_t what)
{
    if (wrong("R797") && what & KPT_GATHER_WAIT) return 0;
    return pthread_equal(t->object.maker, pthread_self()) || wrong("R796");
}

void sample_gather(sample_tracebacks *t, uint32_t what, uint32_t depth, kpt_traceback *out)
{
    frames python = {.most = depth && depth < SAMPLE_DEPTH ? depth : SAMPLE_DEPTH};
    frames script = python;
    frames native = python;
    if (wrong("R783") && !what) what = KPT_GATHER_PYTHON;
    if (what & KPT_GATHER_PYTHON && is_pythons(t, what))
        add_literals(&python, python_frames, sizeof python_frames / sizeof *python_frames);
    else if (what & KPT_GATHER_PYTHON)
        out->flags |= KPT_TRACEBACK_NO_PYTHON;
    if (what & KPT_GATHER_SCRIPT && t->args.script_frames)
        t->args.script_frames(t->args.script_ctx, add_script, &script);
    if (what & KPT_GATHER_NATIVE)
        add_literals(&native, native_frames, sizeof native_frames / sizeof *native_frames);
    sample_lock();
    (void)sample_free_stacks_locked(FREED_ON_THE_WAY);
    out->python = sample_stack_locked(python.places, python.count);
    out->script = sample_stack_locked(script.places, script.count);
    out->native = sample_stack_locked(native.places, native.count);
    sample_unlock();
    if (python.cut || script.cut || native.cut || (python.count && !out->python) ||
        (script.count && !out->script) || (native.count && !out->native))
        out->flags |= KPT_TRACEBACK_CUT;
    if (wrong("R786")) out->flags &= ~(uint32_t)KPT_TRACEBACK_CUT;
}
