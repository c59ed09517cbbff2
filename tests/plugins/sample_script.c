/* sample_script.c: the recording that every tracer of the sample has: fixed calls on two simulated threads,
 * so the host's thread_attach is not called for them. Calls are in pre-order, thread after thread, and
 * nest; a C call or a garbage collection has no children. */
#include "tests/plugins/sample.h"

enum { MAIN, STEP, SIZE, LEN, COLLECT, IDLE, RUN, SLEEP, POINT };

static const kpt_name names[SAMPLE_NAMES] = {
    {MAIN, 3, {"main.py(3): main", 0}, {"main", 0}, {"main", 0}, {"main.py", 0}},
    {STEP, 12, {"main.py(12): step", 0}, {"step", 0}, {"Model.step", 0}, {"main.py", 0}},
    {SIZE, 20, {"main.py(20): größe", 0}, {"größe", 0}, {"Model.größe", 0}, {"main.py", 0}},
    {LEN, 0, {"<built-in function len>", 0}, {"len", 0}, {"len", 0}, {"", 0}},
    {COLLECT, 0, {"Python GC", 0}, {"collect", 0}, {"", 0}, {"", 0}},
    {IDLE, 31, {"main.py(31): idle", 0}, {"idle", 0}, {"idle", 0}, {"main.py", 0}},
    {RUN, 5, {"worker.py(5): run", 0}, {"run", 0}, {"Worker.run", 0}, {"worker.py", 0}},
    {SLEEP, 0, {"<built-in function sleep>", 0}, {"sleep", 0}, {"sleep", 0}, {"", 0}},
    {POINT, 0, {"<point>", 0}, {"<point>", 0}, {"", 0}, {"", 0}},
};

static const kpt_thread threads[SAMPLE_THREADS] = {
    {0, 0, 101, 0, {"MainThread", 0}},
    {1, KPT_THREAD_ENDED, 102, 0, {"Worker-1", 0}},
};

/* A row is a call, and its depth is its indentation. */
// clang-format off
const sample_call sample_script[SAMPLE_CALLS] = {
    {0, 0, MAIN,        KPT_KIND_PYTHON, KPT_ACTIVITY_BEGAN_BEFORE, 1000, 1400},
    {0, 1,   STEP,      KPT_KIND_PYTHON, 0, 1050, 1200},
    {0, 2,     SIZE,    KPT_KIND_PYTHON, 0, 1060, 1100},
    {0, 2,     LEN,     KPT_KIND_C, 0, 1110, 1110},
    {0, 2,     COLLECT, KPT_KIND_GC, 0, 1120, 1150},
    {0, 1,   STEP,      KPT_KIND_PYTHON, 0, 1200, 1300},
    {0, 2,     LEN,     KPT_KIND_C, 0, 1210, 1250},
    {0, 0, IDLE,        KPT_KIND_PYTHON, 0, 1450, 1500},
    {0, 0, MAIN,        KPT_KIND_PYTHON, KPT_ACTIVITY_ENDED_BY_STOP, 1600, SAMPLE_STILL_OPEN},
    {0, 1,   STEP,      KPT_KIND_PYTHON, KPT_ACTIVITY_ENDED_BY_STOP, 1700, SAMPLE_STILL_OPEN},
    {1, 0, RUN,         KPT_KIND_PYTHON, 0, 1020, 1900},
    {1, 1,   STEP,      KPT_KIND_PYTHON, 0, 1300, 1800},
    {1, 2,     SLEEP,   KPT_KIND_C, 0, 1310, 1790},
    {1, 0, IDLE,        KPT_KIND_PYTHON, 0, 1910, 1990},
};
// clang-format on

/* Copies a literal behind the previous copies. */
static void copy_text(sample_recording *recording, size_t *used, kpt_str *text)
{
    size_t size = strlen(text->data);
    if (size > sizeof recording->text - *used) size = sizeof recording->text - *used;
    text->data = memcpy(recording->text + *used, text->data, size);
    text->size = size;
    *used += size;
}

void sample_record(sample_recording *recording)
{
    size_t used = 0;
    for (uint32_t i = 0; i < SAMPLE_NAMES; i++) {
        kpt_name *name = &recording->names[i];
        *name = names[i];
        copy_text(recording, &used, &name->display);
        copy_text(recording, &used, &name->function);
        copy_text(recording, &used, &name->qualname);
        copy_text(recording, &used, &name->file);
    }
    for (uint32_t i = 0; i < SAMPLE_THREADS; i++) {
        recording->threads[i] = threads[i];
        copy_text(recording, &used, &recording->threads[i].name);
    }
}
