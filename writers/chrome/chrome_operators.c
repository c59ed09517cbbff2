#include "writers/chrome/chrome_operators.h"

#include "writers/operators/operator_inputs.h"

#define PUT KPTI_PUT

void kpti_chrome_node_take(kpti_chrome_node *node, kpt_activity *a)
{
    if (a->kind != KPT_KIND_OPERATOR) return;
    if (a->value0 && a->value1) {
        *node = (kpti_chrome_node){a->parent_id, a->value0, a->value1};
    } else if (!a->value0 && a->id == node->parent_id) {
        a->value0 = node->sequence_plus_1;
        a->value1 = node->forward_thread;
    }
}

static char *put_category(char *at, const kpt_activity *a, uint32_t scope)
{
    const int is_user = (a->kind == KPT_KIND_OPERATOR ? scope : a->value1 & 0xff) == KPT_SCOPE_USER;
    at = PUT(at, ",\n{\"ph\":\"X\",\"cat\":\"");
    at = is_user ? PUT(at, "user_annotation") : PUT(at, "cpu_op");
    return PUT(at, "\",\"name\":\"");
}

/* The ids by which a call refers to the operator that it is in. A range has none. */
static char *put_ids(char *at, const kpt_activity *a)
{
    at = PUT(at, ",\"Python parent id\":");
    at = a->parent_id ? kpti_put_u64(at, a->parent_id) : PUT(at, "null");
    return kpti_put_u64(PUT(at, ",\"Python id\":"), a->id);
}

/* Most bytes of the Python function of a forward operator, as an argument. */
enum { MAX_FORWARD = 64 + KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH };
_Static_assert(KPTI_CHROME_MAX_NAME *KPTI_JSON_MAX_GROWTH + 2 * KPTI_CHROME_MAX_REST <
                       KPTI_OUT_BUFFER_BYTES &&
                   0 + MAX_FORWARD < KPTI_OUT_BUFFER_BYTES,
               "an operator without its inputs fits into the buffer");

static char *put_forward(char *at, kpti_operator_walk *walk, const kpt_activity *a)
{
    kpt_str function;
    if (!walk || !kpti_operator_walk_forward(walk, a, &function)) return at;
    at = PUT(at, ",\"forward at\":\"");
    at = function.size ? kpti_chrome_escape(at, function) : PUT(at, "(not recorded)");
    return PUT(at, "\"");
}

void kpti_chrome_put_operator(kpti_chrome_events *events, kpti_operator_walk *walk,
                              const kpt_activity *a, kpti_chrome_operator texts)
{
    const int is_operator = a->kind == KPT_KIND_OPERATOR;
    char *at = kpti_out_reserve(events->out,
                                (size_t)texts.name.size + texts.more.size + KPTI_CHROME_MAX_REST);
    at = kpti_fragment_put(put_category(at, a, texts.name.note), texts.name);
    at = kpti_fragment_put(at, texts.thread);
    at = kpti_chrome_put_start(at, events, a->start_ns);
    at = kpti_put_us_between(PUT(at, ",\"dur\":"), a->start_ns, a->end_ns);
    at = kpti_put_u64(PUT(at, ",\"args\":{\"Record function id\":"), a->value2);
    if (is_operator || texts.external)
        at = kpti_put_u64(PUT(at, ",\"External id\":"), texts.external ? texts.external : a->id);
    if (is_operator && a->value0) {
        at = kpti_put_u64(PUT(at, ",\"Sequence number\":"), a->value0 - 1);
        at = kpti_put_u64(PUT(at, ",\"Fwd thread id\":"), a->value1);
    }
    if (is_operator && !texts.external) at = put_ids(at, a);
    at = kpti_put_near(PUT(at, ",\"Ev Idx\":"), events->next_index++, &events->index);
    kpti_out_wrote(events->out, kpti_put_bytes(at, texts.more.text, texts.more.size));
    if (texts.inputs.size) kpti_out_put(events->out, texts.inputs.text, texts.inputs.size);
    at = put_forward(kpti_out_reserve(events->out, MAX_FORWARD), walk, a);
    kpti_out_wrote(events->out, PUT(at, "}}"));
    if (walk && is_operator) kpti_operator_walk_claim(walk, a);
}

kpt_status kpti_chrome_add_inputs(kpti_fragments *names, const kpt_name *name)
{
    char *begin = kpti_fragments_reserve(names, kpti_inputs_json_bytes(name->function.size));
    if (!begin) return KPT_E_MEMORY;
    return kpti_fragments_set(names, name->index, begin,
                              (size_t)(kpti_inputs_json(begin, name->function) - begin), 0);
}

static void put_end(kpti_writer *w, kpti_fragment thread, int64_t ns, uint64_t id, int is_begin)
{
    char *at = kpti_out_reserve(&w->out, KPTI_CHROME_MAX_REST);
    if (w->operators->shift) ns = kpti_shifted(w->operators->shift, ns);
    at = PUT(at, ",\n{\"ph\":\"");
    *at++ = is_begin ? 's' : 'f';
    at = kpti_put_u64(PUT(at, "\",\"cat\":\"fwdbwd\",\"id\":"), kpti_id_in_file(w, id));
    at = kpti_fragment_put(PUT(at, ",\"name\":\"fwdbwd"), thread);
    at = kpti_put_us_between(at, w->base_ns, ns);
    kpti_out_wrote(&w->out, is_begin ? PUT(at, "}") : PUT(at, ",\"bp\":\"e\"}"));
}

void kpti_chrome_put_links(kpti_writer *w, const kpti_fragments *threads)
{
    const kpti_operator_walk *walk = w->operators;
    for (uint32_t i = 0; walk && i < walk->link_count; i++) {
        const kpti_forward_link *link = &walk->links[i];
        put_end(w, kpti_fragments_get(threads, link->forward_thread, kpti_chrome_no_thread),
                link->forward_ns, i + 1, 1);
        put_end(w, kpti_fragments_get(threads, link->backward_thread, kpti_chrome_no_thread),
                link->backward_ns, i + 1, 0);
    }
}
