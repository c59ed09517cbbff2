#include "writers/report/report_operators.h"

#include "writers/chrome/chrome_events.h"
#include "writers/report/report_text.h"

#define PUT KPTI_PUT

/* Bits of name_kinds. HAS_USER_SCOPE: an operator with that name is an annotation. */
enum { IS_OPERATOR = 1, IS_ANNOTATION = 2, HAS_USER_SCOPE = 4 };

/* The number of a function that is not known; functions have the numbers behind it. */
enum { NOT_KNOWN = 1 };

static kpt_status add_kind(kpti_report *w, uint32_t name, uint8_t kind)
{
    kpt_status status = kpti_array_reach(&w->base.heap, &w->name_kinds, &w->name_kind_capacity,
                                         name, sizeof *w->name_kinds);
    if (status == KPT_OK) w->name_kinds[name] |= kind;
    return status;
}

kpt_status kpti_report_names(kpti_report *w, const kpt_batch *batch)
{
    kpt_status status = kpti_step_finder_names(&w->steps, batch);
    if (batch->name_stride < KPT_FIELD_END(kpt_name, scope)) return status;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++) {
        const kpt_name *name = kpti_record(batch->names, batch->name_stride, i);
        if (name->scope == KPT_SCOPE_USER) status = add_kind(w, name->index, HAS_USER_SCOPE);
    }
    return status;
}

kpt_status kpti_report_operator(kpti_report *w, const kpt_activity *a)
{
    const int is_user = a->kind == KPT_KIND_OPERATOR ? a->name < w->name_kind_capacity &&
                                                           w->name_kinds[a->name] & HAS_USER_SCOPE
                                                     : (a->value1 & 0xff) == KPT_SCOPE_USER;
    return add_kind(w, a->name, is_user ? IS_ANNOTATION : IS_OPERATOR);
}

static kpt_status add_forward(kpti_report *w, kpt_str function, uint32_t number)
{
    char *begin =
        kpti_fragments_reserve(&w->forwards, kpti_chrome_reserve(function) + KPTI_CHROME_MAX_REST);
    char *at;
    if (!begin) return KPT_E_MEMORY;
    at = PUT(kpti_chrome_escape(PUT(begin, "\""), function), "\"");
    return kpti_fragments_set(&w->forwards, number, begin, (size_t)(at - begin), 0);
}

kpt_status kpti_report_forward(kpti_report *w, const kpt_activity *a, uint32_t *number)
{
    kpt_str function;
    uint32_t *known;
    kpt_status status;
    *number = 0;
    if (!w->base.operators || !kpti_operator_walk_forward(w->base.operators, a, &function))
        return KPT_OK;
    *number = NOT_KNOWN;
    if (!function.size) return KPT_OK;
    known = kpti_u64_map_at(&w->forward_of, kpti_text_key(function));
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        status = add_forward(w, function, w->forwards.count);
        if (status != KPT_OK) return status;
        *known = NOT_KNOWN + w->forwards.count;
    }
    *number = *known;
    return KPT_OK;
}

/* --- the JSON ----------------------------------------------------------------------------------- */

/* Writes the numbers of the names that are KIND. */
static void put_kind(kpti_report *w, const char *member, uint32_t kind)
{
    const char *comma = "";
    kpti_report_put_literal(w, member);
    for (uint32_t i = 0; i < w->name_kind_capacity; i++) {
        if (!(w->name_kinds[i] & kind)) continue;
        kpti_report_put(w, kpti_put_u64(stpcpy(w->text, comma), i));
        comma = ",";
    }
    kpti_report_put_literal(w, "]");
}

static void put_forwards(kpti_report *w)
{
    kpti_report_put_literal(w, ",\"forwards\":[");
    for (uint32_t i = 0; i < w->forwards.count; i++) {
        if (i) kpti_report_put_literal(w, ",\n");
        kpti_packed_put(&w->packed, w->forwards.items[i].text, w->forwards.items[i].size);
    }
    kpti_report_put_literal(w, "]");
}

/* Writes [start, end, number, name, thread, flags]. */
static void put_step(kpti_report *w, const kpti_step *step, const char *comma)
{
    char buffer[KPTI_MAX_STEP_NAME];
    char *at = kpti_report_put_time(w, PUT(stpcpy(w->text, comma), "["), step->start_ns);
    at = kpti_report_put_time(w, PUT(at, ","), step->end_ns);
    at = PUT(kpti_put_u64(PUT(at, ","), step->number), ",\"");
    at = kpti_chrome_escape(at, kpti_step_finder_name(&w->steps, step, buffer));
    at = kpti_put_u64(PUT(at, "\","), step->thread);
    at = kpti_put_u64(PUT(at, ","), step->flags);
    kpti_report_put(w, PUT(at, "]"));
}

void kpti_report_put_operators(kpti_report *w)
{
    uint32_t count;
    const kpti_step *steps;
    w->steps.last_ns = w->base.last_ns;
    steps = kpti_step_finder_steps(&w->steps, &count);
    if (w->name_kind_capacity) {
        put_kind(w, ",\"operators\":[", IS_OPERATOR);
        put_kind(w, ",\"annotations\":[", IS_ANNOTATION);
        put_forwards(w);
    }
    for (uint32_t i = 0; i < count; i++)
        put_step(w, &steps[i], i ? ",\n" : ",\"steps\":[");
    kpti_report_put_literal(w, count ? "]}" : "}");
}

void kpti_report_free_operators(kpti_report *w)
{
    kpti_heap_give(&w->base.heap, w->name_kinds, w->name_kind_capacity * sizeof *w->name_kinds);
    kpti_fragments_free(&w->forwards);
    kpti_u64_map_free(&w->forward_of);
    kpti_step_finder_free(&w->steps);
}
