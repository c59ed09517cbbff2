#include "gatherer.h"

#include <pthread.h>

#include "frame_mark.h"
#include "kpt_traceback.h"
#include "place_cache.h"
#include "session.h"
#include "stack_cache.h"

/* DEAD_AT_ONCE: nodes that one gather gives back: 20 ns each, or 300 where they have left the cache. */
enum { FIRST_ROOM = 64, DEAD_AT_ONCE = 16 };
/* A mark is set on a level that MARK_STEP divides, so that most gathers walk no further, and on any one that
 * was the innermost to stay the same for OFTEN gathers. */
enum { MARK_STEP = 8, OFTEN = 8 };

/* A frame on the way from the innermost to the outermost. */
typedef struct walked {
    kpti_instruction at;
    void *frame; /* NULL where frames are not known */
} walked;

typedef struct level {
    PyCodeObject *code;
    const void *frame;
    int32_t offset;
    uint32_t version; /* of the code */
    uint32_t place;
    uint32_t stack; /* from the outermost frame to this one */
} level;

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
    walked *walked;     /* innermost first */
    uint32_t below;     /* levels below the last one that was walked: as they were */
    int may_mark;       /* the frames that were walked */
    const void *stayed; /* the innermost frame that was there the last time, too */
    uint32_t how_often;
    kpti_frame_marks marks;
    kpti_place_cache places;
    kpti_stack_cache stacks;
} gatherer;

static __thread gatherer *own __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;

static void free_gatherer(void *self)
{
    gatherer *g = self;
    kpti_stack_release(g->held);
    kpti_stack_cache_empty(&g->stacks);
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

/* All levels of the stack that was walked. */
static uint32_t total(const gatherer *g)
{
    return g->below + g->walked_count;
}

static walked *walked_at(const gatherer *g, uint32_t i)
{
    return &g->walked[total(g) - 1 - i];
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
/* Fills in what the thread of STATE is in; 0: there is more. */
static int walk_raw(gatherer *g, PyThreadState *state, uint32_t depth)
{
    kpti_raw_frame *frame = kpti_raw_top(state);
    for (; frame; frame = kpti_raw_below(frame)) {
        if (g->walked_count == depth || !add_walked(g, kpti_raw_instruction(frame), frame))
            return 0;
        /* The levels below a marked one are as they were. */
        if (g->marks.count && frame->frame_obj &&
            kpti_frame_marks_find(&g->marks, frame, &g->below))
            return 1;
    }
    g->marks.count = 0;
    return 1;
}

/* Marks one of the levels before STAYED, whose frames are those of the last time, if it is worth it. */
static void set_mark(gatherer *g, uint32_t stayed)
{
    const uint32_t marked = kpti_frame_marks_last(&g->marks);
    const uint32_t innermost = stayed ? stayed - 1 : 0;
    const uint32_t step = innermost / MARK_STEP * MARK_STEP;
    if (innermost <= marked || innermost < g->below) return;
    if (g->stayed != walked_at(g, innermost)->frame) {
        g->stayed = walked_at(g, innermost)->frame;
        g->how_often = 0;
    }
    if (++g->how_often >= OFTEN)
        kpti_frame_marks_add(&g->marks, walked_at(g, innermost)->frame, innermost);
    else if (step > marked && step > g->below)
        kpti_frame_marks_add(&g->marks, walked_at(g, step)->frame, step);
}
#else
static int walk_raw(gatherer *g, PyThreadState *state, uint32_t depth)
{
    (void)g;
    (void)state;
    (void)depth;
    return 0;
}

static void set_mark(gatherer *g, uint32_t stayed)
{
    (void)g;
    (void)stayed;
}
#endif

/* The same through objects of Python's. Codes stay: their frames run. */
static int walk_objects(gatherer *g, PyThreadState *state, uint32_t depth)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyFrameObject *frame;
    int whole = 1;
    PyErr_Fetch(&type, &value, &traceback);
    frame = PyThreadState_GetFrame(state);
    while (frame && whole) {
        const kpti_instruction at = {kpti_frame_code(frame), kpti_frame_offset(frame)};
        PyFrameObject *back = NULL;
        whole = g->walked_count < depth && add_walked(g, at, NULL);
        if (whole) back = PyFrame_GetBack(frame);
        if (!back && PyErr_Occurred()) whole = 0; /* there was no memory for it */
        Py_DECREF(frame);
        frame = back;
    }
    PyErr_Restore(type, value, traceback); /* also takes away one of ours */
    return whole;
}

static void walk(gatherer *g, kpti_standing s, uint32_t depth, uint32_t *flags)
{
    PyThreadState *state = s == KPTI_DETACHED ? PyGILState_GetThisThreadState() : kpti_attached();
    const uint32_t most = depth ? depth : UINT32_MAX;
    g->walked_count = g->below = 0;
    /* With a depth levels are counted from another frame on; a trace function may move frames. */
    g->may_mark = !depth && !state->c_tracefunc;
    if (!g->may_mark) g->marks.count = 0;
    if ((kpti_frames_are_known() ? walk_raw : walk_objects)(g, state, most)) return;
    g->marks.count = 0;
    *flags |= KPT_TRACEBACK_CUT;
}

/* How many levels, from the outermost on, are those of the last time. */
static uint32_t same_levels(gatherer *g)
{
    const uint32_t most = g->count < total(g) ? g->count : total(g);
    for (uint32_t i = g->below; i < most; i++) {
        const walked *w = walked_at(g, i);
        if (g->levels[i].code != w->at.code || g->levels[i].offset != w->at.offset ||
            g->levels[i].version != kpti_code_version(w->at.code))
            return i;
    }
    return most;
}

/* Whether all instructions from level FIRST on were seen before. */
static int all_known(gatherer *g, uint32_t first)
{
    for (uint32_t i = first; i < total(g); i++)
        if (!kpti_place_known(&g->places, walked_at(g, i)->at)) return 0;
    return 1;
}

/* Fills in the places of the levels from FIRST on; how many levels there are then: fewer without memory.
 * KEPT: those that may be remembered. */
static uint32_t fill_places(gatherer *g, uint32_t first, kpti_standing s, int no_objects,
                            uint32_t *kept)
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
        const uint32_t place = kpti_place_known(&g->places, at);
        if (i >= g->room) return i;
        g->levels[i] = (level){
            at.code, walked_at(g, i)->frame, at.offset, kpti_code_version(at.code), place, 0};
        if (!place) g->levels[i].place = kpti_place_find_slow(&g->places, at, s, no_objects, &keep);
        if (!g->levels[i].place) return i;
        *kept += (uint32_t)keep;
    }
    return count;
}

/* Fills in the stacks of the levels from FIRST to COUNT, as far as they are known; how far that is. */
static uint32_t known_stacks(gatherer *g, uint32_t first, uint32_t count)
{
    uint32_t stack = first ? g->levels[first - 1].stack : 0;
    for (uint32_t i = first; i < count; i++) {
        stack = kpti_stack_known(&g->stacks, stack, g->levels[i].place);
        if (!stack) return i;
        g->levels[i].stack = stack;
    }
    return count;
}

/* Puts the levels from FIRST to COUNT into the tree; how far there was memory. */
static uint32_t add_stacks_locked(gatherer *g, uint32_t first, uint32_t count)
{
    uint32_t stack = first ? g->levels[first - 1].stack : 0;
    kpti_stacks_free_dead_locked(DEAD_AT_ONCE);
    for (uint32_t i = first; i < count; i++) {
        stack = kpti_stack_know_locked(&g->stacks, stack, g->levels[i].place);
        if (!stack) return i;
        g->levels[i].stack = stack;
    }
    return count;
}

/* Builds the stack of COUNT levels, of which those before FIRST are as they were, and remembers KEPT. */
static uint32_t build(gatherer *g, uint32_t first, uint32_t count, uint32_t kept, int hold)
{
    const uint32_t before = g->held;
    uint32_t built = known_stacks(g, first, count);
    const int locked = built < count;
    uint32_t stack;
    if (locked) {
        kpti_stacks_lock();
        built = add_stacks_locked(g, built, count);
    }
    stack = built ? g->levels[built - 1].stack : 0;
    g->count = kept < built ? kept : built;
    g->held = g->count ? g->levels[g->count - 1].stack : 0;
    if (hold) kpti_stack_retain(stack);
    kpti_stack_retain(g->held);
    if (locked) kpti_stacks_unlock();
    kpti_stack_release(before);
    kpti_frame_marks_trim(&g->marks, g->count);
    return stack;
}

/* Nothing is new: the stack is held already. */
static uint32_t same_again(const gatherer *g, int hold)
{
    const uint32_t stack = total(g) ? g->levels[total(g) - 1].stack : 0;
    if (hold) kpti_stack_retain(stack);
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
    g->held = g->count = g->marks.count = 0;
    memset(&g->places, 0, sizeof g->places);
    g->epoch = epoch;
}

/* AGAIN is set where the GIL is to be taken first. */
static uint32_t gather_with(gatherer *g, kpti_standing s, kpti_wish wish, int *again,
                            uint32_t *flags)
{
    const uint32_t epoch = atomic_load_explicit(&kpti_session_epoch, memory_order_acquire);
    uint32_t first;
    uint32_t stayed;
    uint32_t count;
    uint32_t kept;
    uint32_t stack;
    if (g->epoch != epoch) forget(g, epoch);
    walk(g, s, wish.depth, flags);
    first = same_levels(g);
    /* The next one may be the same frame, in which only the instruction is another. */
    stayed = first + (first < g->count && first < total(g) &&
                      g->levels[first].frame == walked_at(g, first)->frame);
    if (first == total(g)) {
        stack = same_again(g, wish.hold);
    } else {
        if (*again && (*again = !all_known(g, first))) return 0;
        count = fill_places(g, first, s, wish.no_objects, &kept);
        if (count < total(g)) *flags |= KPT_TRACEBACK_CUT;
        stack = build(g, first, count, kept, wish.hold);
    }
    *again = 0;
    if (s == KPTI_ATTACHED && g->may_mark && !wish.no_objects && !(*flags & KPT_TRACEBACK_CUT))
        set_mark(g, stayed);
    return stack;
}

/* One that is forgotten at once, for what must not be remembered, and for a gather inside of a gather. */
static uint32_t gather_apart(kpti_standing s, kpti_wish wish, uint32_t *flags)
{
    gatherer *g = calloc(1, sizeof *g);
    uint32_t stack = 0;
    int again = 0;
    if (!g) {
        *flags |= KPT_TRACEBACK_CUT;
        return 0;
    }
    stack = gather_with(g, s, wish, &again, flags);
    free_gatherer(g);
    return stack;
}

uint32_t kpti_gatherer_gather(kpti_standing s, kpti_wish wish, int *again, uint32_t *flags)
{
    gatherer *g = own ? own : make_own();
    uint32_t stack;
    if (!g || g->inside || s == KPTI_FOREIGN) {
        *again = 0;
        return gather_apart(s, wish, flags);
    }
    g->inside = 1;
    stack = gather_with(g, s, wish, again, flags);
    g->inside = 0;
    return stack;
}

void kpti_gatherer_forget(void)
{
    if (!own || own->inside) return;
    forget(own, own->epoch);
    kpti_stack_cache_empty(&own->stacks);
}
