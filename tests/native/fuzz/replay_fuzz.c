/* replay_fuzz.c: bytes as a recording, delivered in every order, to a sink that checks. For libFuzzer;
 * corpus_main.c runs the kept inputs without it.
 *
 * An input is a wish and a time of 3 bytes, then commands. A command's first byte: its lower half is a kind of
 * event, which takes a byte for its number and one for the ticks since the last; kinds above GC_END are
 * something else, see command(). Every byte string is an input, and none does more work than its length
 * allows. */
#include <stdlib.h>
#include <string.h>

#include "tests/native/fuzz/delivering.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { THREADS = 3, RUNS = 3, MAX_EVENTS = 4096 };

/* What a chunk says beside its events. */
typedef struct head {
    uint64_t base_ticks;
    uint64_t dropped_before;
    uint32_t run;
    uint32_t sequence;
} head;

/* One thread's chunks in the making; the events of the last are still being collected. */
typedef struct tape {
    kpti_chunk *first;
    kpti_chunk *last;
    head head;
    uint32_t count;
    int begun;
    kpti_event events[MAX_EVENTS];
} tape;

typedef struct recorder {
    tape tapes[THREADS];
    tape *on;
    uint64_t now;
} recorder;

/* Puts the events into a chunk that ends with the last of them. */
static void seal(tape *t)
{
    kpti_chunk *chunk;
    if (!t->begun) return;
    chunk = calloc(1, sizeof *chunk + t->count * sizeof(kpti_event));
    if (!chunk) abort();
    chunk->base_ticks = t->head.base_ticks;
    chunk->dropped_before = t->head.dropped_before;
    chunk->run = t->head.run;
    chunk->sequence = t->head.sequence;
    chunk->count = chunk->capacity = t->count;
    chunk->events = (kpti_event *)(chunk + 1);
    memcpy(chunk->events, t->events, t->count * sizeof(kpti_event));
    *(t->last ? &t->last->next : &t->first) = chunk;
    t->last = chunk;
    t->count = 0;
}

static void begin_chunk(recorder *r, uint32_t run, uint32_t sequence, uint64_t dropped)
{
    seal(r->on);
    r->on->begun = 1;
    r->on->head = (head){r->now, dropped, run, sequence};
}

static void append(recorder *r, uint64_t word)
{
    if (!r->on->begun) begin_chunk(r, 0, 0, 0);
    if (r->on->count == MAX_EVENTS) begin_chunk(r, r->on->head.run, r->on->head.sequence + 1, 0);
    r->on->events[r->on->count++] = word;
}

static void append_event(recorder *r, uint32_t kind, input *in)
{
    const uint32_t number = (uint32_t)take(in, 1);
    r->now += take(in, 1);
    append(r, kpti_event_make(kind, number, r->now));
    if (kind == KPTI_EVENT_EPOCH) append(r, r->now);
    if (kind == KPTI_EVENT_WATCH || kind == KPTI_EVENT_GC_END) append(r, take(in, 2));
}

/* Its 60 bits are small numbers, so that INPUTS refer to events. */
static void append_detail(recorder *r, uint32_t kind, input *in)
{
    const uint32_t number = (uint32_t)take(in, 1);
    append(r, kpti_event_make(kind, kind == KPTI_EVENT_TEXT ? number % 8 << 24 : number % 8,
                              take(in, 1)));
    if (kind == KPTI_EVENT_WIDE) append(r, take(in, 1));
}

static void command(recorder *r, input *in)
{
    const uint32_t byte = (uint32_t)take(in, 1);
    const uint32_t kind = byte & 15;
    const uint32_t upper = byte >> 4;
    switch (kind) {
    case 8: /* another thread */
        r->on = &r->tapes[upper % THREADS];
        break;
    case 9: /* another chunk, most likely without a gap */
        begin_chunk(r, r->on->head.run, r->on->head.sequence + (upper ? 1 : 2), upper == 15);
        break;
    case 10: /* another run */
        begin_chunk(r, r->on->head.run + 1, upper / 8, 0);
        break;
    case 11: /* any chunk at all */
        begin_chunk(r, upper, (uint32_t)take(in, 1), take(in, 1));
        break;
    case 12: /* time passes, or goes back */
        r->now += (uint64_t)1 << (upper * 4 % 40);
        break;
    case 13:
        r->now -= upper;
        break;
    case 14: /* any word at all */
        append(r, take(in, 8));
        break;
    case 15: /* a detail of the host's, or a function with a larger number */
        if (upper & 8) {
            append_detail(r, KPTI_EVENT_TEXT + (upper & 3), in);
            break;
        }
        append(r, kpti_event_make(upper & 1, (uint32_t)take(in, 4) & KPTI_MAX_NUMBER, r->now));
        break;
    default:
        append_event(r, kind, in);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static recorder r;
    input in = {data, data + size};
    const wish w = take_wish(&in);
    const uint64_t stop = take(&in, 3);
    kpti_track tracks[THREADS];
    const kpti_run runs[RUNS] = {{0, stop}, {stop + 100, 2 * stop}, {2 * stop + 100, UINT64_MAX}};
    for (int t = 0; t < THREADS; t++)
        memset(&r.tapes[t], 0, offsetof(tape, events));
    r.on = &r.tapes[0];
    r.now = 0;
    while (in.at < in.end)
        command(&r, &in);
    for (int t = 0; t < THREADS; t++) {
        seal(&r.tapes[t]);
        tracks[t] = (kpti_track){.chunks = r.tapes[t].first, .spans = (uint32_t)t};
    }
    deliver_all(
        (kpti_recording){.tracks = tracks, .track_count = THREADS, .runs = runs, .run_count = RUNS},
        w);
    for (int t = 0; t < THREADS; t++)
        free_chunks(r.tapes[t].first);
    return 0;
}
