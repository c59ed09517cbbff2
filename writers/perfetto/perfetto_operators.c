#include "writers/perfetto/perfetto_operators.h"

#include "writers/perfetto/perfetto_packets.h"

/* The numbers of interned texts. */
enum { CATEGORY_OPERATOR = 1, CATEGORY_USER = 2 };
enum { SEQUENCE = KPTI_ANNOTATION_CONTINUED + 1, FORWARD_THREAD, FORWARD, EXTERNAL, RECORD_ID };

/* Above the numbers of other flows. */
#define FIRST_LINK (UINT64_C(1) << 63)

void kpti_perfetto_intern_operators(kpti_perfetto *w, kpti_perfetto_track *t)
{
    static const struct {
        uint32_t field;
        uint32_t number;
        const char *text;
    } rows[] = {{INTERNED_CATEGORY, CATEGORY_OPERATOR, "cpu_op"},
                {INTERNED_CATEGORY, CATEGORY_USER, "user_annotation"},
                {INTERNED_ANNOTATION, KPTI_ANNOTATION_CONTINUED, "continued"},
                {INTERNED_ANNOTATION, SEQUENCE, "Sequence number"},
                {INTERNED_ANNOTATION, FORWARD_THREAD, "Fwd thread id"},
                {INTERNED_ANNOTATION, FORWARD, "forward at"},
                {INTERNED_ANNOTATION, EXTERNAL, "External id"},
                {INTERNED_ANNOTATION, RECORD_ID, "Record function id"}};
    if (t->has_operators) return;
    t->has_operators = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        kpti_perfetto_intern(w, t, rows[i].field, rows[i].number, kpt_str_of(rows[i].text));
}

/* --- forward functions -------------------------------------------------------------------------- */

/* Sets *NUMBER to that of the forward function of A among the interned texts; 0: A is no node, or no walk was made. */
static kpt_status find_forward(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a,
                               uint32_t *number)
{
    kpt_str function;
    uint32_t *known;
    *number = 0;
    if (!w->base.operators || !kpti_operator_walk_forward(w->base.operators, a, &function))
        return KPT_OK;
    if (!function.size) function = kpt_str_of("(not recorded)");
    known = kpti_u64_map_at(&t->nodes->forwards, kpti_text_key(function));
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        *known = ++t->nodes->forward_count;
        kpti_perfetto_intern(w, t, INTERNED_STRING, *known, function);
    }
    *number = *known;
    return KPT_OK;
}

static kpt_status begin_node(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a)
{
    if (!t->nodes) {
        t->nodes = kpti_heap_take_zeroed(&w->base.heap, sizeof *t->nodes);
        if (!t->nodes) return KPT_E_MEMORY;
        t->nodes->forwards.heap = w->base.heap;
    }
    t->nodes->node = (kpti_perfetto_node){a->id, a->parent_id, a->value0, a->value1, 0};
    return find_forward(w, t, a, &t->nodes->node.forward);
}

/* --- begins: most take 25 bytes ----------------------------------------------------------------- */

/* A short annotation: its length fits in one byte. */
static char *annotate(char *at, uint32_t annotation, uint32_t kind, uint64_t value)
{
    char *begin = at;
    at = kpti_proto_number(at + 2, ANNOTATION_NAME_ID, annotation);
    at = kpti_proto_number(at, kind, value);
    begin[0] = EVENT_ANNOTATION << 3 | KPTI_WIRE_BYTES;
    begin[1] = (char)(at - begin - 2);
    return at;
}

static char *put_numbers(char *at, uint64_t sequence_plus_1, uint64_t forward_thread)
{
    at = annotate(at, SEQUENCE, ANNOTATION_UINT, sequence_plus_1 - 1);
    return forward_thread ? annotate(at, FORWARD_THREAD, ANNOTATION_UINT, forward_thread) : at;
}

static int is_users(const kpt_activity *a, kpti_fragment slice)
{
    return (a->kind == KPT_KIND_OPERATOR ? slice.note : a->value1 & 0xff) == KPT_SCOPE_USER;
}

/* LINK is the number of the flow that begins or ends here; 0: none. */
static char *put_fields(const kpti_perfetto *w, char *at, const kpti_perfetto_track *t,
                        const kpt_activity *a, uint32_t category, uint32_t link)
{
    at = kpti_proto_number(at, EVENT_CATEGORY_ID, category);
    if (a->flags & KPT_ACTIVITY_BEGAN_BEFORE)
        at = annotate(at, KPTI_ANNOTATION_BEGAN_BEFORE, ANNOTATION_BOOL, 1);
    if (a->flags & KPT_ACTIVITY_CONTINUED)
        at = annotate(at, KPTI_ANNOTATION_CONTINUED, ANNOTATION_BOOL, 1);
    if (a->value2) at = annotate(at, RECORD_ID, ANNOTATION_UINT, a->value2);
    if (a->kind == KPT_KIND_OPERATOR && a->value0) at = put_numbers(at, a->value0, a->value1);
    if (t->nodes && t->nodes->node.id && t->nodes->node.forward)
        at = annotate(at, FORWARD, ANNOTATION_STRING_ID, t->nodes->node.forward);
    if (link) at = kpti_proto_fixed64(at, EVENT_FLOW, FIRST_LINK + kpti_id_in_file(&w->base, link));
    return at;
}

/* Writes a packet whose length fits in one byte: each of its numbers takes at most ten. */
static void put_begin(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a,
                      kpti_fragment slice, uint32_t link)
{
    enum { TAG_AND_LENGTH = 2 };
    const uint32_t category = is_users(a, slice) ? CATEGORY_USER : CATEGORY_OPERATOR;
    char *begin = kpti_out_reserve(&w->base.out, KPTI_PERFETTO_SHORT_PACKET);
    char *event =
        kpti_perfetto_put_head(t, kpti_perfetto_put_time(t, begin + TAG_AND_LENGTH, a->start_ns));
    char *at;
    memcpy(event, slice.text, KPTI_FRAGMENT_STEP);
    at = put_fields(w, event + slice.size, t, a, category, link);
    event[1] = (char)(at - event - TAG_AND_LENGTH);
    kpti_perfetto_end_short(w, begin, at);
}

kpt_status kpti_perfetto_begin_operator(kpti_perfetto *w, kpti_perfetto_track *t,
                                        const kpt_activity *a, kpti_fragment slice)
{
    kpt_status status = KPT_OK;
    kpti_perfetto_intern_operators(w, t);
    if (a->kind == KPT_KIND_OPERATOR && a->value0 && a->value1) {
        status = begin_node(w, t, a);
        if (status != KPT_OK) return status;
    }
    put_begin(w, t, a, slice,
              w->base.operators ? kpti_operator_walk_link(w->base.operators, a) : 0);
    return KPT_OK;
}

/* --- ends --------------------------------------------------------------------------------------- */

int kpti_perfetto_end_operator(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a,
                               kpti_perfetto_operator_end *end)
{
    const kpti_perfetto_operator_end none = {0};
    *end = none;
    if (w->base.operators && kpti_operator_walk_claim(w->base.operators, a))
        end->external = kpti_id_in_file(&w->base, a->id);
    if (t->nodes && a->id == t->nodes->node.id) t->nodes->node.id = 0;
    if (t->nodes && !a->value0 && a->id == t->nodes->node.parent_id) end->node = t->nodes->node;
    return end->external || end->node.parent_id;
}

char *kpti_perfetto_put_operator_end(char *at, const kpti_perfetto_operator_end *end)
{
    if (end->external) at = annotate(at, EXTERNAL, ANNOTATION_UINT, end->external);
    if (!end->node.parent_id) return at;
    at = put_numbers(at, end->node.sequence_plus_1, end->node.forward_thread);
    return end->node.forward ? annotate(at, FORWARD, ANNOTATION_STRING_ID, end->node.forward) : at;
}

void kpti_perfetto_free_operators(kpti_perfetto *w, kpti_perfetto_track *t)
{
    if (!t->nodes) return;
    kpti_u64_map_free(&t->nodes->forwards);
    kpti_heap_give(&w->base.heap, t->nodes, sizeof *t->nodes);
    t->nodes = NULL;
}
