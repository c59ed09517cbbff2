#include "python_tracer/capture/incremental_unwind.h"

#include "abi/impl/kpti_impl.h"
#include "abi/kpt_traceback.h"
#include "core/base/assert.h"
#include "core/base/growable_array.h"
#include "python_tracer/interpreter/pending_exception.h"

/* DEAD_AT_ONCE: the number of dead nodes that one capture frees. A node takes 20 ns, or 300 ns if it has
 * left the processor's cache. */
enum { DEAD_AT_ONCE = 16 };
/* A mark is set on levels divisible by MARK_STEP, so that most captures walk no further, and on any level
 * that was the innermost unchanged one for OFTEN captures. */
enum { MARK_STEP = 8, OFTEN = 8 };

/* Returns the number of levels of the walked stack. */
static uint32_t total(const kpti_unwind *g)
{
    return g->below + g->walked_count;
}

static kpti_unwound_frame *walked_at(const kpti_unwind *g, uint32_t i)
{
    kpti_assert(i >= g->below && i < total(g));
    return &g->walked[total(g) - 1 - i];
}

/* Adds a frame to the walked ones. Returns 0 if there is no memory. */
KPTI_HOT static int add_walked(kpti_unwind *g, kpti_instruction at, void *frame)
{
    if (kpti_array_reach(&kpti_malloc_heap, &g->walked, &g->walked_capacity, g->walked_count,
                         sizeof *g->walked) != KPT_OK)
        return 0;
    g->walked[g->walked_count++] = (kpti_unwound_frame){at, frame};
    return 1;
}

#if KPTI_KNOWN_FRAMES
static const void *ip_of(const void *frame)
{
    return frame ? kpti_raw_ip((const kpti_raw_frame *)frame) : NULL;
}

static int is_level(const kpti_level *l, kpti_raw_frame *frame)
{
    return l->frame == frame && l->ip == kpti_raw_ip(frame) &&
           l->version == kpti_code_version(kpti_raw_frame_code(frame));
}

/* Compares FRAME and the frames below it with the first COUNT levels. Returns 0 if they are the same, or
 * one more than the index of the innermost level that differs. MAY_BE_CUT: the levels end where the depth
 * limit cut the last stack, so more frames must follow. */
KPTI_HOT static uint32_t differs(kpti_unwind *g, kpti_raw_frame *frame, uint32_t count,
                                 int may_be_cut)
{
    const kpti_level *l = g->levels + count;
    const kpti_level *last = g->levels;
    kpti_raw_frame *last_frame = NULL;
    kpti_frame_marks_trim(&g->marks, count - 1); /* the walk would have found inner marks */
    last += kpti_frame_marks_last(&g->marks);
    for (; frame; frame = frame->previous) {
        if (kpti_raw_is_entry(frame)) continue;
        if (l == last) break;
        l--;
        if (!is_level(l, frame)) return (uint32_t)(l - g->levels) + 1;
        last_frame = frame;
    }
    if (l != last) return 1;
    if (!g->marks.count) return may_be_cut != (frame != NULL);
    /* The levels below a marked level are unchanged. */
    if (kpti_frame_marks_find(&g->marks, last_frame, &g->below)) return 0;
    return (uint32_t)(last - g->levels) + 1;
}

/* Adds the frames of STATE's thread to the walked ones, up to the first that is in the levels. Returns 0 if
 * the stack is cut: there are more frames than DEPTH, or no memory. */
KPTI_HOT static int walk_raw(kpti_unwind *g, PyThreadState *state, uint32_t depth)
{
    kpti_raw_frame *frame = kpti_raw_top(state);
    const int was_cut = g->was_cut && g->depth == depth;
    uint32_t level = g->top ? g->top : g->count; /* one more than the level that may match FRAME */
    uint32_t other = level + 1; /* one more than the innermost level known to differ */
    for (; frame; frame = kpti_raw_below(frame)) {
        /* Inner frames usually have higher addresses than outer ones. If they don't, all frames are looked
         * up. */
        if (level && g->levels[level - 1].frame != frame && frame->owner == FRAME_OWNED_BY_THREAD)
            while (level && (uintptr_t)g->levels[level - 1].frame > (uintptr_t)frame)
                level--;
        if (level && g->levels[level - 1].frame == frame) {
            const int may_be_cut = was_cut && !g->walked_count && level == g->top;
            if (level < other && g->walked_count + level <= depth)
                other = differs(g, frame, level, may_be_cut);
            if (!other) {
                g->below = level;
                return !may_be_cut;
            }
            level--;
        }
        if (g->walked_count == depth || !add_walked(g, kpti_raw_instruction(frame), frame))
            return 0;
        if (g->marks.count && frame->frame_obj &&
            kpti_frame_marks_find(&g->marks, frame, &g->below))
            return 1;
    }
    g->marks.count = 0;
    return 1;
}

/* Marks one of the levels before STAYED, whose frames are the same as at the last capture, if a mark pays
 * off. */
static void set_mark(kpti_unwind *g, uint32_t stayed)
{
    const uint32_t marked = kpti_frame_marks_last(&g->marks);
    const uint32_t innermost = stayed ? stayed - 1 : 0;
    const uint32_t step = innermost / MARK_STEP * MARK_STEP;
    if (innermost <= marked) return;
    if (g->stayed != g->levels[innermost].frame) {
        g->stayed = g->levels[innermost].frame;
        g->how_often = 0;
    }
    if (++g->how_often >= OFTEN)
        kpti_frame_marks_add(&g->marks, g->levels[innermost].frame, innermost);
    else if (step > marked)
        kpti_frame_marks_add(&g->marks, g->levels[step].frame, step);
}
#else
static const void *ip_of(const void *frame)
{
    return frame;
}

static int walk_raw(kpti_unwind *g, PyThreadState *state, uint32_t depth)
{
    (void)g;
    (void)state;
    (void)depth;
    return 0;
}

static void set_mark(kpti_unwind *g, uint32_t stayed)
{
    (void)g;
    (void)stayed;
}
#endif

/* The same through frame objects. The code objects stay alive, since their frames run. */
static int walk_objects(kpti_unwind *g, PyThreadState *state, uint32_t depth)
{
    kpti_pending_exception pending;
    PyFrameObject *frame;
    int whole = 1;
    pending = kpti_exception_save();
    frame = PyThreadState_GetFrame(state);
    while (frame && whole) {
        const kpti_instruction at = {kpti_frame_code(frame), kpti_frame_offset(frame)};
        PyFrameObject *back = NULL;
        whole = g->walked_count < depth && add_walked(g, at, NULL);
        if (whole) back = PyFrame_GetBack(frame);
        if (!back && PyErr_Occurred()) whole = 0; /* no memory for the frame object */
        Py_DECREF(frame);
        frame = back;
    }
    kpti_exception_restore(pending);
    return whole;
}

KPTI_HOT static void walk(kpti_unwind *g, PyThreadState *state, uint32_t depth, uint32_t *flags)
{
    const uint32_t max = depth ? depth : UINT32_MAX;
    g->walked_count = g->below = 0;
    /* With a depth limit, level 0 is not the outermost frame. A trace function may move frames to other
     * lines. */
    g->may_mark = !depth && !state->c_tracefunc;
    if (!g->may_mark) g->marks.count = 0;
    if ((kpti_frames_are_known() ? walk_raw : walk_objects)(g, state, max)) return;
    g->marks.count = 0;
    *flags |= KPT_TRACEBACK_CUT;
}

/* Returns the number of levels, from the outermost on, that are the same as at the last capture. */
KPTI_HOT static uint32_t same_levels(kpti_unwind *g)
{
    const uint32_t max = g->count < total(g) ? g->count : total(g);
    for (uint32_t i = g->below; i < max; i++) {
        const kpti_unwound_frame *w = walked_at(g, i);
        if (g->levels[i].frame != w->frame || g->levels[i].code != w->at.code ||
            g->levels[i].offset != w->at.offset ||
            g->levels[i].version != kpti_code_version(w->at.code))
            return i;
    }
    return max;
}

/* Whether the code locations of all levels from FIRST on are in the cache. */
KPTI_HOT static int all_known(kpti_unwind *g, uint32_t first)
{
    for (uint32_t i = first; i < total(g); i++)
        if (!kpti_location_cached(&g->locations, walked_at(g, i)->at)) return 0;
    return 1;
}

/* Fills in the code locations of the levels from FIRST on. Returns the number of levels then filled, which
 * is smaller if there is no memory. *KEPT receives the number of levels that may be remembered. */
static uint32_t fill_places(kpti_unwind *g, uint32_t first, kpti_gil_state s, int no_objects,
                            uint32_t *kept)
{
    const uint32_t count = total(g);
    int keep = 1;
    if (count) /* without memory, the levels that fit are filled */
        (void)kpti_array_reach(&kpti_malloc_heap, &g->levels, &g->capacity, count - 1,
                               sizeof *g->levels);
    *kept = first;
    for (uint32_t i = first; i < count; i++) {
        const kpti_instruction at = walked_at(g, i)->at;
        void *frame = walked_at(g, i)->frame;
        const uint32_t location = kpti_location_cached(&g->locations, at);
        if (i >= g->capacity) return i;
        g->levels[i] = (kpti_level){
            frame, ip_of(frame), at.code, at.offset, kpti_code_version(at.code), location, 0};
        if (!location)
            g->levels[i].location =
                kpti_location_find_slow(&g->locations, at, s, no_objects, &keep);
        if (!g->levels[i].location) return i;
        *kept += (uint32_t)keep;
    }
    return count;
}

/* Fills in the stacks of the levels from FIRST to COUNT from the cache. Returns the first level whose stack
 * is not cached, or COUNT. */
static uint32_t known_stacks(kpti_unwind *g, uint32_t first, uint32_t count)
{
    uint32_t stack = first ? g->levels[first - 1].stack : 0;
    for (uint32_t i = first; i < count; i++) {
        stack = kpti_stack_known(&g->stacks, stack, g->levels[i].location);
        if (!stack) return i;
        g->levels[i].stack = stack;
    }
    return count;
}

/* Adds the levels from FIRST to COUNT to the tree. Returns the first level without memory, or COUNT. */
static uint32_t add_stacks_locked(kpti_unwind *g, uint32_t first, uint32_t count)
{
    uint32_t stack = first ? g->levels[first - 1].stack : 0;
    kpti_assert(count <= g->capacity && (!first || stack));
    kpti_stacks_free_dead_locked(DEAD_AT_ONCE);
    for (uint32_t i = first; i < count; i++) {
        stack = kpti_stack_know_locked(&g->stacks, stack, g->levels[i].location);
        if (!stack) return i;
        g->levels[i].stack = stack;
    }
    return count;
}

/* Builds the stack of COUNT levels, of which those before FIRST are unchanged. Remembers KEPT levels. */
static uint32_t build(kpti_unwind *g, uint32_t first, uint32_t count, uint32_t kept, int hold)
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

/* Returns the unchanged stack, which is already held. */
KPTI_HOT static uint32_t same_again(const kpti_unwind *g, int hold)
{
    const uint32_t stack = total(g) ? g->levels[total(g) - 1].stack : 0;
    if (!hold) return stack; /* the caller has pinned the tree */
    kpti_stack_retain(stack);
    if (kpti_stacks_have_dead()) {
        kpti_stacks_lock();
        kpti_stacks_free_dead_locked(DEAD_AT_ONCE);
        kpti_stacks_unlock();
    }
    return stack;
}

void kpti_unwind_forget(kpti_unwind *g, uint64_t epoch)
{
    kpti_stack_release(g->held);
    g->held = g->count = g->top = g->marks.count = 0;
    g->last.number = 0;
    memset(&g->locations, 0, sizeof g->locations);
    g->epoch = epoch;
}

void kpti_unwind_free(kpti_unwind *g)
{
    kpti_stack_release(g->held);
    kpti_stack_cache_empty(&g->stacks);
    free(g->levels);
    free(g->walked);
}

/* Makes the walked stack the last one, if all of it is remembered. */
KPTI_HOT static void remember(kpti_unwind *g, PyThreadState *state, uint32_t depth, int is_cut)
{
    const int is_whole = total(g) <= g->count && (!is_cut || total(g) == depth);
    g->depth = depth;
    g->was_cut = is_cut;
    g->top = is_whole && kpti_frames_are_known() ? total(g) : 0;
    g->last.number = 0;
    if (g->top) {
        const kpti_level *l = &g->levels[g->top - 1];
        g->last = (kpti_unwound){++g->numbers, state, l->frame, l->ip, l->stack};
    }
}

KPTI_HOT uint32_t kpti_unwind_next(kpti_unwind *g, PyThreadState *state, kpti_gil_state s,
                                   kpti_capture_options wish, int *again, uint32_t *flags)
{
    const uint64_t epoch = kpti_unwind_epoch();
    uint32_t cut = 0;
    uint32_t first;
    uint32_t stayed;
    uint32_t stack;
    if (g->epoch != epoch) kpti_unwind_forget(g, epoch);
    walk(g, state, wish.depth, &cut);
    first = same_levels(g);
    /* The next level may be the same frame at another instruction. */
    stayed = first + (first < g->count && first < total(g) &&
                      g->levels[first].frame == walked_at(g, first)->frame);
    if (first == total(g)) {
        stack = same_again(g, wish.hold);
        if (first != g->top || g->last.state != state || g->depth != wish.depth)
            remember(g, state, wish.depth, cut != 0);
    } else {
        uint32_t count;
        uint32_t kept;
        if (*again && (*again = !all_known(g, first))) return 0;
        count = fill_places(g, first, s, wish.no_objects, &kept);
        stack = build(g, first, count, kept, wish.hold);
        if (count < total(g)) cut = KPT_TRACEBACK_CUT;
        remember(g, state, wish.depth, cut != 0);
    }
    *again = 0;
    *flags |= cut;
    if (s == KPTI_ATTACHED && g->may_mark && !wish.no_objects && !cut) set_mark(g, stayed);
    return stack;
}
