#include "gatherer.h"

#include <pthread.h>

#include "frame_mark.h"
#include "kpt_traceback.h"
#include "name.h"
#include "place.h"
#include "raw_frame.h"
#include "session.h"
#include "stack.h"

/* DEAD_AT_ONCE: nodes that one gather gives back, some 20 ns each. */
enum { PLACE_CACHE = 512, FIRST_ROOM = 64, DEAD_AT_ONCE = 64 };
/* MARK_STEP: a mark is set on a level that this divides; most gathers then walk that far at most. */
enum { MARK_STEP = 8, MOST_MARKS = 64 };

/* A frame on the way from the innermost to the outermost. */
typedef struct walked {
    kpti_instruction at;
    void *frame; /* NULL where frames are not known */
} walked;

typedef struct level {
    PyCodeObject *code;
    const void *frame;
    int32_t offset;
    uint32_t place;
    uint32_t stack; /* from the outermost frame to this one */
} level;

typedef struct known_place {
    const PyCodeObject *code;
    int32_t offset;
    uint32_t place;
} known_place;

/* A frame that would be known again. */
typedef struct mark {
    const void *frame;
    const void *object;
    uint32_t level; /* it is at */
} mark;

/* What a thread remembers. Addresses of code objects hold as long as the session's epoch does. */
typedef struct gatherer {
    uint32_t epoch;
    int inside; /* the thread is in the middle of a gather */
    uint32_t held;
    uint32_t count; /* levels, outermost first: the stack that is held */
    uint32_t room;
    level *levels;
    uint32_t walked_count;
    uint32_t walked_room;
    walked *walked; /* innermost first */
    uint32_t below; /* levels below the last one that was walked: as they were */
    uint32_t mark_count;
    mark marks[MOST_MARKS]; /* outermost first */
    known_place places[PLACE_CACHE];
} gatherer;

static __thread gatherer *own __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;

static void free_gatherer(void *self)
{
    gatherer *g = self;
    kpti_stack_release(g->held);
    free(g->levels);
    free(g->walked);
    free(g);
}

/* Runs when the thread ends, which may be long after Python. */
static void thread_ended(void *self)
{
    own = NULL;
    free_gatherer(self);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_thread_end, thread_ended);
}

static gatherer *make_own(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    gatherer *g;
    (void)pthread_once(&once, make_key);
    g = calloc(1, sizeof *g);
    if (!g || pthread_setspecific(at_thread_end, g) != 0) {
        free(g);
        return NULL;
    }
    own = g;
    return g;
}

/* ARRAY with twice the ROOM; NULL: no memory, and nothing has changed. */
static void *grown(void *array, uint32_t *room, size_t size)
{
    const uint32_t wanted = *room ? *room * 2 : FIRST_ROOM;
    void *larger = realloc(array, wanted * size);
    if (larger) *room = wanted;
    return larger;
}

/* One frame more; 0: no memory. */
static int add_walked(gatherer *g, kpti_instruction at, void *frame)
{
    if (g->walked_count == g->walked_room) {
        void *larger = grown(g->walked, &g->walked_room, sizeof *g->walked);
        if (!larger) return 0;
        g->walked = larger;
    }
    g->walked[g->walked_count++] = (walked){at, frame};
    return 1;
}

#if KPTI_KNOWN_FRAMES
/* Whether FRAME is one that was marked: the levels below it are as they were. Marks above it are of
 * frames that have ended, or they would have been met before. */
static int is_marked(gatherer *g, const kpti_raw_frame *frame)
{
    for (uint32_t i = g->mark_count; i > 0; i--) {
        const mark *m = &g->marks[i - 1];
        if (m->frame != frame || !kpti_frame_has_mark(frame, m->object)) continue;
        g->mark_count = i;
        g->below = m->level;
        return 1;
    }
    return 0;
}

/* Fills in what the thread of STATE is in; 0: there is more. */
static int walk_raw(gatherer *g, PyThreadState *state, uint32_t depth)
{
    kpti_raw_frame *frame = kpti_raw_top(state);
    for (; frame; frame = kpti_raw_below(frame)) {
        if (g->walked_count == depth || !add_walked(g, kpti_raw_instruction(frame), frame))
            return 0;
        if (g->mark_count && frame->frame_obj && is_marked(g, frame)) return 1;
    }
    g->mark_count = 0;
    return 1;
}

/* Marks the innermost level that is as it was the last time, FIRST being the first that is not. */
static void set_mark(gatherer *g, uint32_t first)
{
    const uint32_t at = first ? (first - 1) / MARK_STEP * MARK_STEP : 0;
    const uint32_t last = g->mark_count ? g->marks[g->mark_count - 1].level : 0;
    kpti_raw_frame *frame;
    PyFrameObject *object;
    if (at <= last || at <= g->below || g->mark_count == MOST_MARKS) return;
    frame = g->walked[g->walked_count - 1 - (at - g->below)].frame;
    if (!frame || g->levels[at].frame != frame) return;
    object = kpti_frame_mark(frame);
    if (object) g->marks[g->mark_count++] = (mark){frame, object, at};
}
#else
static int walk_raw(gatherer *g, PyThreadState *state, uint32_t depth)
{
    (void)g;
    (void)state;
    (void)depth;
    return 0;
}

static void set_mark(gatherer *g, uint32_t first)
{
    (void)g;
    (void)first;
}
#endif

/* The same through objects of Python's. Codes stay: their frames run. */
static int walk_objects(gatherer *g, PyThreadState *state, uint32_t depth)
{
    PyFrameObject *frame = PyThreadState_GetFrame(state);
    int whole = 1;
    while (frame && whole) {
        const kpti_instruction at = {kpti_frame_code(frame), kpti_frame_offset(frame)};
        PyFrameObject *back = NULL;
        whole = g->walked_count < depth && add_walked(g, at, NULL);
        if (whole) back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return whole;
}

static void walk(gatherer *g, kpti_standing s, uint32_t depth, uint32_t *flags)
{
    PyThreadState *state = s == KPTI_DETACHED ? PyGILState_GetThisThreadState() : kpti_attached();
    const uint32_t most = depth ? depth : UINT32_MAX;
    g->walked_count = g->below = 0;
    if (depth) g->mark_count = 0; /* levels are counted from another frame on */
    if ((kpti_frames_are_known() ? walk_raw : walk_objects)(g, state, most)) return;
    g->mark_count = 0;
    *flags |= KPT_TRACEBACK_CUT;
}

/* All levels of the stack that was walked. */
static uint32_t total(const gatherer *g)
{
    return g->below + g->walked_count;
}

static walked *walked_at(const gatherer *g, uint32_t i)
{
    return &g->walked[total(g) - 1 - i];
}

/* How many levels, from the outermost on, are those of the last time. */
static uint32_t same_levels(gatherer *g)
{
    const uint32_t most = g->count < total(g) ? g->count : total(g);
    for (uint32_t i = g->below; i < most; i++) {
        const walked *w = walked_at(g, i);
        if (g->levels[i].code != w->at.code || g->levels[i].offset != w->at.offset) return i;
    }
    return most;
}

static uint32_t intern_place(uint32_t function, kpti_instruction at)
{
    kpti_place place = {.kind = KPT_SYMBOL_PYTHON, .where = (uint64_t)(int64_t)at.offset};
    int lines[2];
    int columns[2];
    if (!function) return 0;
    kpti_code_position(at.code, at.offset, lines, columns);
    atomic_init(&place.function, function);
    place.line = lines[0] > 0 ? (uint32_t)lines[0] : 0;
    place.end_line = lines[1] > 0 ? (uint32_t)lines[1] : place.line;
    place.column = columns[0] >= 0 ? (uint32_t)columns[0] : KPT_NO_COLUMN;
    place.end_column = columns[1] >= 0 ? (uint32_t)columns[1] : KPT_NO_COLUMN;
    return kpti_place_intern(&place);
}

/* The place of an instruction that was not seen before. KEPT is set to 0 where it may not be remembered. */
static uint32_t place_slow(known_place *known, kpti_instruction at, kpti_standing s, int *kept)
{
    uint32_t place = intern_place(
        s == KPTI_ATTACHED ? kpti_name_code(at.code) : kpti_name_code_anew(at.code), at);
    if (place && s == KPTI_ATTACHED && kpti_name_is_kept(at.code))
        *known = (known_place){at.code, at.offset, place};
    else
        *kept = 0;
    return place;
}

static known_place *place_slot(gatherer *g, kpti_instruction at)
{
    const uintptr_t address = (uintptr_t)at.code;
    return &g->places[(address >> 5 ^ address >> 13 ^ (uintptr_t)at.offset >> 1) &
                      (PLACE_CACHE - 1)];
}

static int is_known(const known_place *known, kpti_instruction at)
{
    return known->code == at.code && known->offset == at.offset;
}

/* Whether all instructions from level FIRST on were seen before. */
static int all_known(gatherer *g, uint32_t first)
{
    for (uint32_t i = first; i < total(g); i++)
        if (!is_known(place_slot(g, walked_at(g, i)->at), walked_at(g, i)->at)) return 0;
    return 1;
}

/* Fills in the places of the levels from FIRST on; how many levels there are then: fewer without memory.
 * KEPT: those that may be remembered. */
static uint32_t fill_places(gatherer *g, uint32_t first, kpti_standing s, uint32_t *kept)
{
    const uint32_t count = total(g);
    int keep = 1;
    while (g->room < count) {
        void *larger = grown(g->levels, &g->room, sizeof *g->levels);
        if (!larger) break;
        g->levels = larger;
    }
    *kept = first;
    for (uint32_t i = first; i < count; i++) {
        const kpti_instruction at = walked_at(g, i)->at;
        known_place *known = place_slot(g, at);
        const uint32_t place = is_known(known, at) ? known->place : 0;
        if (i >= g->room) return i;
        g->levels[i] = (level){at.code, walked_at(g, i)->frame, at.offset, place, 0};
        if (!place) g->levels[i].place = place_slow(known, at, s, &keep);
        if (!g->levels[i].place) return i;
        *kept += (uint32_t)keep;
    }
    return count;
}

/* Puts COUNT levels, of which those before FIRST are in the tree already, there, and remembers KEPT. */
static uint32_t put_on_tree(gatherer *g, uint32_t first, uint32_t count, uint32_t kept)
{
    const uint32_t before = g->held;
    uint32_t stack = first ? g->levels[first - 1].stack : 0;
    uint32_t i;
    kpti_stacks_lock();
    kpti_stacks_free_dead_locked(DEAD_AT_ONCE);
    for (i = first; i < count; i++) {
        const uint32_t on = kpti_stack_on_locked(stack, g->levels[i].place);
        if (!on) break;
        g->levels[i].stack = stack = on;
    }
    g->count = kept < i ? kept : i;
    g->held = g->count ? g->levels[g->count - 1].stack : 0;
    kpti_stack_retain(stack);
    kpti_stack_retain(g->held);
    kpti_stacks_unlock();
    kpti_stack_release(before);
    while (g->mark_count && g->marks[g->mark_count - 1].level > g->count)
        g->mark_count--;
    return stack;
}

/* Nothing is new: the stack is held already. */
static uint32_t same_again(const gatherer *g)
{
    const uint32_t stack = total(g) ? g->levels[total(g) - 1].stack : 0;
    kpti_stack_retain(stack);
    if (kpti_stacks_have_dead()) {
        kpti_stacks_lock();
        kpti_stacks_free_dead_locked(DEAD_AT_ONCE);
        kpti_stacks_unlock();
    }
    return stack;
}

/* Code objects have died: what is remembered of them is worth nothing. */
static void forget(gatherer *g, uint32_t epoch)
{
    kpti_stack_release(g->held);
    g->held = g->count = g->mark_count = 0;
    memset(g->places, 0, sizeof g->places);
    g->epoch = epoch;
}

/* The stack, with one holder. AGAIN is set where the GIL is to be taken first. */
static uint32_t gather_with(gatherer *g, kpti_standing s, uint32_t depth, int *again,
                            uint32_t *flags)
{
    const uint32_t epoch = atomic_load_explicit(&kpti_session_epoch, memory_order_acquire);
    uint32_t first;
    uint32_t count;
    uint32_t kept;
    uint32_t stack;
    if (g->epoch != epoch) forget(g, epoch);
    walk(g, s, depth, flags);
    first = same_levels(g);
    if (first == total(g)) {
        stack = same_again(g);
    } else {
        if (*again && (*again = !all_known(g, first))) return 0;
        count = fill_places(g, first, s, &kept);
        if (count < total(g)) *flags |= KPT_TRACEBACK_CUT;
        stack = put_on_tree(g, first, count, kept);
    }
    *again = 0;
    if (s == KPTI_ATTACHED && !depth) set_mark(g, first);
    return stack;
}

/* One that is forgotten at once, for what must not be remembered, and for a gather inside of a gather. */
static uint32_t gather_apart(kpti_standing s, uint32_t depth, uint32_t *flags)
{
    gatherer *g = calloc(1, sizeof *g);
    uint32_t stack = 0;
    int again = 0;
    if (!g) {
        *flags |= KPT_TRACEBACK_CUT;
        return 0;
    }
    stack = gather_with(g, s, depth, &again, flags);
    free_gatherer(g);
    return stack;
}

uint32_t kpti_gatherer_gather(kpti_standing s, uint32_t depth, int *again, uint32_t *flags)
{
    gatherer *g = own ? own : make_own();
    uint32_t stack;
    if (!g || g->inside || s == KPTI_FOREIGN) return gather_apart(s, depth, flags);
    g->inside = 1;
    stack = gather_with(g, s, depth, again, flags);
    g->inside = 0;
    return stack;
}
