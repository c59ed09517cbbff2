#include "writers/findings/findings.h"

#include "core/base/assert.h"
#include "core/base/batch_records.h"
#include "writers/annotations/synthetic_tids.h"
#include "writers/findings/findings_state.h"

/* --- threads ----------------------------------------------------------------------------------- */

/* A thread never ran if its longest wait for another thread took nearly all its life and the only function of the
 * program that it ran is the one that waited, which called nothing else. */
static void find_idle(kpti_findings *f, uint64_t life_ns)
{
    kpti_wait_row *row;
    uint64_t waiters;
    if (!f->waits.longest_row) return;
    row = &f->waits.rows[f->waits.longest_row - 1];
    waiters = row->by != row->in && !kpti_class_is_library(f->functions[row->by].kind);
    if (life_ns < KPTI_MIN_IDLE_LIFE_NS || f->waits.longest.ns < life_ns / 20 * 19) return;
    if (f->entries != waiters || f->direct > 1) return;
    row->idle_threads++;
    if (f->waits.longest.ns > row->idle.ns) row->idle = f->waits.longest;
}

static void end_thread(kpti_findings *f)
{
    const uint64_t life_ns = (uint64_t)f->thread_last_ns - (uint64_t)f->thread_first_ns;
    find_idle(f, life_ns);
    kpti_wait_table_end_thread(&f->waits, life_ns);
}

/* Threads come in their order: forgets those before THREAD, a thousand at a time. */
static void forget_threads(kpti_findings *f, uint32_t thread)
{
    const uint32_t past = thread - f->first_thread;
    if (thread < f->first_thread || past < 1000 || past >= f->thread_capacity) return;
    memmove(f->threads, f->threads + past, (f->thread_capacity - past) * sizeof *f->threads);
    memset(f->threads + (f->thread_capacity - past), 0, past * sizeof *f->threads);
    f->first_thread = thread;
}

static void begin_thread(kpti_findings *f, const kpt_activity *a)
{
    end_thread(f);
    forget_threads(f, a->thread);
    f->thread = a->thread;
    f->waits.thread = ++f->thread_count;
    f->thread_first_ns = a->start_ns;
    f->thread_last_ns = a->end_ns;
    f->entries = f->direct = 0;
    /* the levels are empty once all roots were delivered */
}

static void set_place(const kpti_findings *f, const kpt_activity *a, kpti_place *place)
{
    const uint32_t at = a->thread - f->first_thread; /* of a forgotten one it is large */
    const kpti_found_thread *const thread = at < f->thread_capacity ? &f->threads[at] : NULL;
    *place = (kpti_place){.at_ns = a->start_ns,
                          .ns = (uint64_t)a->end_ns - (uint64_t)a->start_ns,
                          .os_tid = kpti_made_up_tid(a->thread),
                          .name = a->name};
    if (!thread || !thread->is_known) return;
    place->thread = thread->name;
    if (thread->os_tid) place->os_tid = thread->os_tid;
}

/* --- calls ------------------------------------------------------------------------------------ */

static void take_collection(kpti_findings *f, const kpt_activity *a, uint64_t ns)
{
    kpti_collections *const c = &f->collections;
    c->count++;
    c->total_ns += ns;
    if (ns < c->longest.ns) return;
    set_place(f, a, &c->longest);
    c->generation = a->value0;
}

static kpt_status take_resume(kpti_findings *f, const kpt_activity *a, uint32_t task,
                              uint32_t heaviest)
{
    const kpti_note *const note = kpti_notes_get(f->notes, task);
    uint32_t *number;
    kpti_blocker *blocker;
    kpti_place place;
    kpt_status status;
    set_place(f, a, &place);
    if (!note || place.ns < KPTI_MAX_RESUME_NS) return KPT_OK;
    number = kpti_u64_map_at(&f->blocker_of, kpti_text_key(note->args));
    if (!number) return KPT_E_MEMORY;
    if (!*number) {
        status = kpti_array_reach(&f->heap, &f->blockers, &f->blocker_capacity, f->blocker_count,
                                  sizeof *f->blockers);
        if (status != KPT_OK) return status;
        *number = ++f->blocker_count;
    }
    blocker = &f->blockers[*number - 1];
    blocker->count++;
    blocker->total_ns += place.ns;
    if (place.ns <= blocker->longest.ns) return KPT_OK;
    blocker->longest = place;
    blocker->task = note;
    blocker->heaviest = heaviest;
    return KPT_OK;
}

/* Adds a call to its function. C_NS: own time of the C functions that it called. */
static kpt_status add_to_function(kpti_findings *f, const kpt_activity *a, uint64_t own_ns,
                                  uint64_t c_ns)
{
    kpti_found_function *const function = &f->functions[a->name];
    function->calls++;
    function->own_ns += own_ns;
    function->activity_kind = a->kind;
    if (own_ns > function->longest.ns || function->calls == 1) {
        set_place(f, a, &function->longest);
        function->longest.ns = own_ns;
    }
    if (a->kind == KPT_KIND_C) return KPT_OK;
    function->with_c_ns += own_ns + c_ns;
    if (a->kind != KPT_KIND_PYTHON) return KPT_OK;
    return kpti_slowdown_add(&function->sample, &f->heap, a->start_ns, own_ns + c_ns);
}

static void count_of_thread(kpti_findings *f, const kpt_activity *a, uint32_t kind,
                            uint32_t calls_in_it)
{
    if (a->start_ns < f->thread_first_ns) f->thread_first_ns = a->start_ns;
    if (a->end_ns > f->thread_last_ns) f->thread_last_ns = a->end_ns;
    if (kind == KPTI_CLASS_WORK_ITEM) f->entries += 2; /* whatever it runs */
    if (a->kind == KPT_KIND_C || kpti_class_is_library(kind)) return;
    f->entries++;
    f->direct += calls_in_it;
}

/* Passes the time of A to the level of its caller. */
static void leave_level(kpti_findings *f, const kpt_activity *a, uint32_t kind, uint64_t ns,
                        uint64_t own_ns)
{
    kpti_found_level *const inner = &f->levels[a->depth + 1];
    kpti_found_level *const level = &f->levels[a->depth];
    level->spent_ns += ns;
    level->calls++;
    if (a->kind == KPT_KIND_C) level->c_ns += inner->c_ns + (kpti_class_waits(kind) ? 0 : own_ns);
    if (ns > level->heaviest_ns) {
        level->heaviest_ns = ns;
        level->heaviest = inner->heaviest_ns > own_ns ? inner->heaviest : a->name;
    }
    *inner = (kpti_found_level){0};
    if (a->depth) return;
    f->loose_c_ns += level->c_ns;
    *level = (kpti_found_level){0};
}

static kpt_status reach_call(kpti_findings *f, const kpt_activity *a)
{
    const kpt_status status = kpti_array_reach(&f->heap, &f->functions, &f->function_capacity,
                                               a->name, sizeof *f->functions);
    if (status != KPT_OK) return status;
    return kpti_array_reach(&f->heap, &f->levels, &f->level_capacity, a->depth + 1,
                            sizeof *f->levels);
}

static kpt_status take_waits(kpti_findings *f, const kpt_activity *a, uint32_t kind, uint64_t ns)
{
    kpti_place place;
    if (!kpti_class_waits(kind) || ns < KPTI_MIN_WAIT_NS)
        return kpti_wait_table_end(&f->waits, a->depth, a->name, kind, a->kind == KPT_KIND_C);
    set_place(f, a, &place);
    return kpti_wait_table_add(&f->waits, a->depth, kind, &place);
}

static kpt_status take_call(kpti_findings *f, const kpt_activity *a)
{
    const uint64_t ns = (uint64_t)a->end_ns - (uint64_t)a->start_ns;
    const kpti_found_level *inner;
    uint64_t own_ns;
    uint32_t kind;
    kpti_resume resume;
    kpt_status status = reach_call(f, a);
    if (status != KPT_OK) return status;
    if (a->thread != f->thread || !f->thread_count) begin_thread(f, a);
    inner = &f->levels[a->depth + 1];
    own_ns = ns - (inner->spent_ns < ns ? inner->spent_ns : ns);
    kind = f->functions[a->name].kind;
    f->calls++;
    f->c_calls += a->kind == KPT_KIND_C;
    if (a->start_ns < f->first_ns) f->first_ns = a->start_ns;
    if (a->end_ns > f->last_ns) f->last_ns = a->end_ns;
    if (a->kind == KPT_KIND_GC) take_collection(f, a, ns);
    count_of_thread(f, a, kind, inner->calls);
    status = add_to_function(f, a, own_ns, inner->c_ns);
    if (status == KPT_OK) status = take_waits(f, a, kind, ns);
    if (status == KPT_OK && kpti_resumes_end(&f->resumes, a, &resume))
        status =
            take_resume(f, a, resume.task, inner->heaviest_ns > own_ns ? inner->heaviest : a->name);
    leave_level(f, a, kind, ns, own_ns);
    return status;
}

/* --- batches ---------------------------------------------------------------------------------- */

static kpt_status take_point(kpti_findings *f, const kpt_activity *point)
{
    const kpti_note *const note = kpti_notes_get(f->notes, point->value0);
    int is_new;
    if (!note || note->what != KPTI_NOTE_TASK) return KPT_OK;
    return kpti_resumes_point(&f->resumes, point, &is_new);
}

/* A plugin of an older ABI has shorter records. */
static kpt_status take_name(kpti_findings *f, const void *record, uint32_t bytes)
{
    kpti_found_function *function;
    kpt_name name = {0};
    kpt_status status;
    memcpy(&name, record, bytes < sizeof name ? bytes : sizeof name);
    if (name.flags & KPT_NAME_INPUTS) return KPT_OK;
    status = kpti_array_reach(&f->heap, &f->functions, &f->function_capacity, name.index,
                              sizeof *f->functions);
    if (status != KPT_OK) return status;
    function = &f->functions[name.index];
    function->name = name;
    function->is_known = 1;
    function->kind = kpti_class_of(&name);
    return KPT_OK;
}

static kpt_status take_thread(kpti_findings *f, const kpt_thread *raw)
{
    const uint32_t at = raw->index - f->first_thread;
    kpt_status status;
    if (raw->index < f->first_thread) return KPT_OK; /* its calls were delivered */
    status = kpti_array_reach(&f->heap, &f->threads, &f->thread_capacity, at, sizeof *f->threads);
    if (status == KPT_OK) f->threads[at] = (kpti_found_thread){raw->name, raw->os_tid, 1};
    return status;
}

static kpt_status take_batch(kpti_findings *f, const kpt_batch *batch)
{
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    if (batch->order != KPT_ORDER_THREAD) return KPT_E_UNSUPPORTED;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = take_name(f, kpti_record(batch->names, batch->name_stride, i), batch->name_stride);
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = take_thread(f, kpti_record(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        if (a->kind == KPT_KIND_POINT)
            status = take_point(f, a);
        else if (a->kind != KPT_KIND_RANGE_BEGIN && a->kind != KPT_KIND_RANGE_END)
            status = take_call(f, a);
    }
    return status;
}

kpt_status kpti_findings_batch(void *findings, const kpt_batch *batch)
{
    kpti_findings *f = findings;
    if (f->status == KPT_OK) f->status = take_batch(f, batch);
    return f->status;
}

kpt_status kpti_findings_open(const kpti_heap *heap, const kpti_notes *notes, kpti_findings **out)
{
    kpti_findings *f = kpti_heap_take_zeroed(heap, sizeof *f);
    *out = f;
    if (!f) return KPT_E_MEMORY;
    f->heap = f->resumes.heap = f->waits.heap = f->waits.row_of.heap = f->blocker_of.heap = *heap;
    f->notes = notes;
    f->first_ns = INT64_MAX;
    f->last_ns = INT64_MIN;
    return KPT_OK;
}

kpt_status kpti_findings_write(kpti_findings *f, const kpti_findings_rest *rest,
                               kpti_text_builder *out)
{
    if (f->status != KPT_OK) return f->status;
    end_thread(f); /* the last one; writing twice changes nothing */
    return kpti_found_put(f, rest, out);
}

void kpti_findings_free(kpti_findings *f)
{
    kpti_heap heap;
    if (!f) return;
    heap = f->heap;
    for (uint32_t i = 0; i < f->function_capacity; i++)
        kpti_slowdown_free(&f->functions[i].sample, &heap);
    kpti_heap_give(&heap, f->functions, f->function_capacity * sizeof *f->functions);
    kpti_heap_give(&heap, f->threads, f->thread_capacity * sizeof *f->threads);
    kpti_heap_give(&heap, f->levels, f->level_capacity * sizeof *f->levels);
    kpti_heap_give(&heap, f->blockers, f->blocker_capacity * sizeof *f->blockers);
    kpti_resumes_free(&f->resumes);
    kpti_wait_table_free(&f->waits);
    kpti_u64_map_free(&f->blocker_of);
    kpti_heap_give(&heap, f, sizeof *f);
}
