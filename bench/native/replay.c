/* replay.c: measures the cost per call of delivering a recording: replay, conversion and batches, to a sink
 * that does nothing, in each order. The recording is synthetic: four threads that take turns, calls of all
 * depths, some with lines, and little more than 16 bytes per call. Times are processor time, so that other
 * load on the machine matters less. The best of three counts, except for long recordings. usage:
 * kpt_bench_replay MILLIONS [MILLIONS …] */
#include "bench/native/bench.h"
#include "core/recording/clock.h"
#include "core/recording/delivery/deliver.h"

enum { THREADS = 4, FUNCTIONS = 2000, MAX_CALLEES = 4, MAX_DEPTH = 30 };
enum { HZ = 121875000, TURN_TICKS = HZ / 200, CHUNK_EVENTS = 8192, ROUNDS = 3 };
enum { MILLION = 1000000, LARGE = 20 /* millions: one round must do */ };

static uint32_t random_below(uint64_t *state, uint32_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 32) * bound >> 32);
}

/* A track in the making. */
typedef struct writer {
    kpti_chunk *first;
    kpti_chunk *last;
    uint64_t ticks;
    uint64_t state;
    uint64_t turn_ends;
} writer;

/* Threads take turns of 5 ms, as under a GIL; their ticks then skip those of the other threads. */
static void pass_time(writer *w)
{
    w->ticks += 1 + random_below(&w->state, 20);
    if (w->ticks < w->turn_ends) return;
    w->ticks += (THREADS - 1) * (uint64_t)TURN_TICKS;
    w->turn_ends += THREADS * (uint64_t)TURN_TICKS;
}

static void append(writer *w, uint32_t kind, uint32_t number)
{
    kpti_chunk *chunk = w->last;
    uint64_t before;
    if (!chunk || chunk->count + 4 > chunk->capacity) {
        chunk = calloc(1, sizeof *chunk + CHUNK_EVENTS * sizeof(kpti_event));
        must(chunk != NULL, "calloc");
        chunk->capacity = CHUNK_EVENTS;
        chunk->events = (kpti_event *)(chunk + 1);
        chunk->base_ticks = w->ticks;
        chunk->sequence = w->last ? w->last->sequence + 1 : 0;
        *(w->last ? &w->last->next : &w->first) = chunk;
        w->last = chunk;
    }
    before = w->ticks;
    pass_time(w);
    if (w->ticks >> 32 != before >> 32) {
        chunk->events[chunk->count++] = kpti_event_make(KPTI_EVENT_EPOCH, 0, w->ticks);
        chunk->events[chunk->count++] = w->ticks;
    }
    chunk->events[chunk->count++] = kpti_event_make(kind, number, w->ticks);
}

/* A made-up program: every function calls a few others, each some times, up to a fixed depth. */
typedef struct body {
    uint32_t callees[MAX_CALLEES];
    uint32_t times[MAX_CALLEES];
    uint32_t callee_count;
    uint32_t is_resumed; /* its calls have lines */
} body;

static body program[FUNCTIONS];

static void write_program(void)
{
    uint64_t state = 88172645463325252U;
    for (uint32_t f = 0; f < FUNCTIONS; f++) {
        body *b = &program[f];
        b->is_resumed = random_below(&state, 10) == 0;
        b->callee_count = random_below(&state, 3) ? random_below(&state, MAX_CALLEES + 1) : 0;
        for (uint32_t i = 0; i < b->callee_count; i++) {
            b->callees[i] = random_below(&state, FUNCTIONS);
            b->times[i] = 1 + random_below(&state, 4);
        }
    }
}

/* A running call, and its position in its body. */
typedef struct frame {
    uint32_t function;
    uint32_t callee;
    uint32_t time;
} frame;

static void enter(writer *w, frame *f, uint32_t function)
{
    *f = (frame){function, 0, 0};
    append(w, KPTI_EVENT_ENTER, function);
    if (program[function].is_resumed) append(w, KPTI_EVENT_LINE, 7);
}

/* Returns the function that F calls next, or FUNCTIONS if F returns. */
static uint32_t next_callee(frame *f)
{
    const body *b = &program[f->function];
    if (f->callee < b->callee_count && f->time == b->times[f->callee]) {
        f->callee++;
        f->time = 0;
    }
    if (f->callee == b->callee_count) return FUNCTIONS;
    f->time++;
    return b->callees[f->callee];
}

/* CALLS calls of the program, begun again and again with another function; one in a hundred calls
 * returns early, as if it raised. */
static uint64_t fill(kpti_track *track, uint64_t calls, uint32_t seed)
{
    writer w = {.ticks = seed * (uint64_t)TURN_TICKS, .state = 88172645463325252U + seed};
    frame stack[MAX_DEPTH];
    uint32_t depth = 0;
    uint64_t begun = 0;
    w.turn_ends = w.ticks + TURN_TICKS;
    while (begun < calls || depth) {
        uint32_t callee = FUNCTIONS;
        if (!depth)
            callee = random_below(&w.state, FUNCTIONS);
        else if (begun < calls && depth < MAX_DEPTH && random_below(&w.state, 100))
            callee = next_callee(&stack[depth - 1]);
        if (callee == FUNCTIONS) {
            append(&w, KPTI_EVENT_EXIT, stack[--depth].function);
        } else {
            enter(&w, &stack[depth++], callee);
            begun++;
        }
    }
    *track = (kpti_track){.chunks = w.first, .os_tid = seed};
    return w.ticks;
}

static int describe(void *ctx, uint32_t id, kpti_function_view *out)
{
    (void)ctx;
    memset(out, 0, sizeof *out);
    out->kind = id % 3 ? KPT_KIND_PYTHON : KPT_KIND_C;
    out->first_line = id;
    return 1;
}

typedef struct counter {
    uint64_t activities;
} counter;

static kpt_status count(void *ctx, const kpt_batch *batch)
{
    ((counter *)ctx)->activities += batch->activity_count;
    return KPT_OK;
}

/* Nanoseconds a call of one delivery. */
static double deliver(const kpti_recording *recording, uint32_t order, uint64_t calls)
{
    const kpti_env env = {0};
    const kpti_clock_point ends[] = {{.ticks = 0, .unix_ns = 1, .hz = HZ},
                                     {.ticks = 1, .unix_ns = 9, .hz = HZ}};
    counter c = {0};
    kpti_clock clock;
    kpti_error error;
    kpt_delivery delivery;
    kpti_delivery_job job = {.env = &env, .recording = recording, .delivery = &delivery};
    double start;
    kpti_clock_between(&ends[0], &ends[1], &clock);
    job.own_convert = kpti_clock_convert;
    job.own_convert_ctx = &clock;
    KPT_INIT(&delivery);
    delivery.order = order;
    delivery.sink = count;
    delivery.sink_ctx = &c;
    start = now_ns(CLOCK_THREAD_CPUTIME_ID);
    must(kpti_deliver(&job, &error) == KPT_OK, "deliver");
    must(c.activities == calls * (order == KPT_ORDER_TIME ? 2 : 1), "counting");
    return (now_ns(CLOCK_THREAD_CPUTIME_ID) - start) / (double)calls;
}

static double best(const kpti_recording *recording, uint32_t order, uint64_t calls, int rounds)
{
    double min = deliver(recording, order, calls);
    while (--rounds > 0) {
        const double again = deliver(recording, order, calls);
        if (again < min) min = again;
    }
    return min;
}

static void measure(uint64_t millions)
{
    static const char *const names[] = {"thread", "time", "start"};
    const uint64_t calls = millions * MILLION / THREADS * THREADS;
    const int rounds = millions > LARGE ? 1 : ROUNDS;
    kpti_track tracks[THREADS];
    kpti_run run = {0, 0};
    kpti_recording recording = {.tracks = tracks,
                                .track_count = THREADS,
                                .runs = &run,
                                .run_count = 1,
                                .function_count = FUNCTIONS,
                                .describe = describe};
    for (uint32_t i = 0; i < THREADS; i++) {
        const uint64_t end = fill(&tracks[i], calls / THREADS, i + 1);
        if (end > run.stop_ticks) run.stop_ticks = end;
    }
    printf("{\"calls\": %llu", (unsigned long long)calls);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        printf(", \"%s_ns\": %.1f", names[order], best(&recording, order, calls, rounds));
    printf("}");
    for (uint32_t i = 0; i < THREADS; i++)
        for (const kpti_chunk *chunk = tracks[i].chunks; chunk;) {
            const kpti_chunk *next = chunk->next;
            free((void *)(uintptr_t)chunk);
            chunk = next;
        }
}

int main(int argc, char **argv)
{
    must(argc > 1, "usage: kpt_bench_replay MILLIONS [MILLIONS …]:");
    write_program();
    printf("[");
    for (int i = 1; i < argc; i++) {
        printf("%s", i > 1 ? ", " : "");
        measure(strtoull(argv[i], NULL, 10));
        (void)fflush(stdout);
    }
    printf("]\n");
    return EXIT_SUCCESS;
}
