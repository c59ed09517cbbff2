#include "execution_trace/output/node_text.h"

#include "execution_trace/journal/value_read.h"
#include "execution_trace/output/node_attrs.h"

void kpti_et_nodes_init(kpti_et_nodes *n, const kpti_heap *heap)
{
    n->labels.heap = heap;
    kpti_et_forms_init(&n->forms, heap);
}

void kpti_et_nodes_free(kpti_et_nodes *n)
{
    kpti_et_labels_free(&n->labels);
    kpti_et_forms_free(&n->forms);
}

/* Copies LABEL's text from BEGIN to END. */
static char *put_label(char *at, const kpti_et_label *label, uint32_t begin, uint32_t end)
{
    return kpti_et_copy(at, label->text.data + begin, end - begin);
}

/* --- begin --------------------------------------------------------------------------------------- */

#define ID     "{\"id\":"
#define INPUTS ",\"inputs\":"

void kpti_et_node_begin(kpti_et_nodes *n, kpti_et_node *node)
{
    const kpti_et_label *label = kpti_et_label_of(&n->labels, &node->item);
    const uint32_t size = label ? label->ends[KPTI_ET_LABEL_NAME] : 0;
    kpti_et_text *out = &node->text;
    char *at;
    node->label = label;
    node->label_number = label ? label->number : 0;
    out->used = 0;
    at = kpti_et_text_reserve(out, size + sizeof ID INPUTS + (size_t)3 * KPTI_JSON_MAX_NUMBER);
    out->failed |= !label;
    if (!at || !label) return;
    at = kpti_put_near(KPTI_PUT(at, ID), node->id, &n->last_id);
    at = kpti_put_near(put_label(at, label, 0, size), node->parent, &n->last_parent);
    kpti_et_text_wrote(out, KPTI_PUT(at, INPUTS));
    kpti_et_forms_put(&n->forms, out);
}

/* --- end ----------------------------------------------------------------------------------------- */

/* Tensors are numbered as in the trace. The ranges are JSON within a string. */
typedef struct ranges {
    kpti_et_text *out;
    int any;
} ranges;

static void put_range(void *ctx, uint32_t index, const kpti_et_tensor_view *t)
{
    ranges *r = ctx;
    if (!t->range) return;
    kpti_et_text_put(r->out, r->any ? ",\\\"" : "{\\\"", 3);
    r->any = 1;
    kpti_et_text_u64(r->out, index);
    KPTI_ET_PUT(r->out, "\\\":[");
    for (int i = 0; i < 2; i++) {
        if (i) kpti_et_text_char(r->out, ',');
        if (t->flags & KPT_TAPE_UNSIGNED)
            kpti_et_text_u64(r->out, t->range[i]);
        else
            kpti_et_text_i64(r->out, (int64_t)t->range[i]);
    }
    kpti_et_text_char(r->out, ']');
}

/* Writes the host's attributes, which follow the COUNT values at AT. */
static void put_attrs(kpti_et_nodes *n, kpti_et_text *out, const kpti_et_item *item,
                      const uint64_t *at, uint32_t count, uint32_t attr_count)
{
    at = attr_count ? kpti_et_values_end(item, at, count) : at;
    for (uint32_t i = 0; i < attr_count; i++) {
        const uint32_t type = (uint32_t)(*at >> 32);
        const kpt_str type_text = kpti_et_item_text(item, type);
        KPTI_ET_PUT(out, ",{\"name\":\"");
        kpti_et_text_of(out, item, (uint32_t)*at);
        KPTI_ET_PUT(out, "\",\"type\":\"");
        kpti_et_text_of(out, item, type);
        KPTI_ET_PUT(out, "\",\"value\":");
        kpti_et_put_value(&n->forms.naming, out, item, at + 1,
                          type_text.size == 6 && memcmp(type_text.data, "uint64", 6) == 0);
        kpti_et_text_char(out, '}');
        at = kpti_et_value_end(item, at + 1);
    }
}

#define EXTERNAL ",\"ext_id\":"
#define STACK    ",\"stack\":"
#define ENDED_BY ",\"ended_by\":\""

/* Maximum number of bytes for numbers and the text around them. */
enum {
    MAX_NUMBERS = sizeof RF_ID FW_PARENT SEQ_ID + (size_t)4 * KPTI_JSON_MAX_NUMBER,
    MAX_EXTRA = sizeof DURATION EXTERNAL STACK ENDED_BY + (size_t)6 * KPTI_JSON_MAX_NUMBER
};

/* Returns 1 if the node has fields that few nodes have: ranges, the host's additions, or an error. */
static int has_more(const kpti_et_begin *b, const kpti_et_end *e)
{
    return b->record.flags & (KPTI_ET_ELEMENTS | KPTI_ET_HAS_MORE) ||
           (e && e->record.flags & (KPTI_ET_RAISED | KPTI_ET_HAS_MORE));
}

static void put_more(kpti_et_nodes *n, const kpti_et_node *node, const kpti_et_node_end *end,
                     kpti_et_text *out)
{
    const kpti_et_begin *b = (const kpti_et_begin *)node->item.record;
    const kpti_et_end *e = end->item ? (const kpti_et_end *)end->item->record : NULL;
    ranges r = {out, 0};
    kpti_et_more more;
    if (b->record.flags & KPTI_ET_ELEMENTS)
        kpti_et_each_tensor(&node->item, kpti_et_values_of(&b->record, b + 1), b->value_count,
                            put_range, &r);
    if (r.any) kpti_et_text_char(out, '}');
    KPTI_ET_PUT(out, TENSOR_RANGE_END);
    put_attrs(n, out, &node->item, kpti_et_values_of(&b->record, b + 1), b->value_count,
              kpti_et_more_of(&b->record, b + 1).attr_count);
    if (!e) return;
    more = kpti_et_more_of(&e->record, e + 1);
    put_attrs(n, out, end->item, kpti_et_values_of(&e->record, e + 1), e->value_count,
              more.attr_count);
    if (e->record.flags & KPTI_ET_RAISED) {
        KPTI_ET_PUT(out, "," STRING("error"));
        kpti_et_text_of(out, end->item, more.error);
        KPTI_ET_PUT(out, "\"}");
    }
}

/* Writes torch's attributes in torch's order, those of the host, and the beginning of ours. */
static void put_own_attrs(kpti_et_nodes *n, const kpti_et_node *node, const kpti_et_node_end *end,
                          kpti_et_text *out)
{
    const kpti_et_begin *b = (const kpti_et_begin *)node->item.record;
    const kpti_et_end *e = end->item ? (const kpti_et_end *)end->item->record : NULL;
    const kpti_et_label *label = node->label;
    const uint32_t *ends;
    char *at;
    if (!label || label->number != node->label_number)
        label = kpti_et_label_of(&n->labels, &node->item);
    out->failed |= !label;
    at = label ? kpti_et_text_reserve(out, label->text.used + MAX_NUMBERS) : NULL;
    if (!at) return;
    ends = label->ends;
    at = kpti_put_near(KPTI_PUT(at, RF_ID), b->record_id, &n->last_record);
    at = kpti_put_u64(KPTI_PUT(at, FW_PARENT), node->forward_parent);
    at = kpti_put_i64(KPTI_PUT(at, SEQ_ID), b->sequence);
    if (!has_more(b, e)) {
        at = put_label(at, label, ends[KPTI_ET_LABEL_NAME], ends[KPTI_ET_LABEL_OURS]);
    } else {
        at = put_label(at, label, ends[KPTI_ET_LABEL_NAME], ends[KPTI_ET_LABEL_ATTRS]);
        kpti_et_text_wrote(out, at);
        put_more(n, node, end, out);
        at = kpti_et_text_reserve(out, label->text.used + KPTI_ET_STEP);
        if (!at) return;
        at = put_label(at, label,
                       ends[KPTI_ET_LABEL_ATTRS] + (uint32_t)(sizeof TENSOR_RANGE_END - 1),
                       ends[KPTI_ET_LABEL_OURS]);
    }
    kpti_et_text_wrote(out, at);
}

/* Writes our fields, from start_ns on. */
static void put_extra(kpti_et_nodes *n, const kpti_et_node *node, const kpti_et_node_end *end,
                      kpti_et_text *out)
{
    const kpti_et_begin *b = (const kpti_et_begin *)node->item.record;
    const uint64_t external_id = kpti_et_more_of(&b->record, b + 1).external_id;
    const uint64_t start = (uint64_t)b->record.ns + (uint64_t)end->unix_offset_ns;
    char *at = kpti_et_text_reserve(out, MAX_EXTRA);
    if (!at) return;
    at = (int64_t)start < 0 ? kpti_put_i64(at, (int64_t)start)
                            : kpti_put_ns_near(at, start, &n->last_start);
    at = kpti_put_u64(KPTI_PUT(at, DURATION),
                      end->ns > b->record.ns ? (uint64_t)end->ns - (uint64_t)b->record.ns : 0);
    if (external_id) at = kpti_put_u64(KPTI_PUT(at, EXTERNAL), external_id);
    if (node->stack) at = kpti_put_u64(KPTI_PUT(at, STACK), node->stack - 1);
    if (end->ended_by) {
        at = KPTI_PUT(at, ENDED_BY);
        at = kpti_put_bytes(at, end->ended_by, strlen(end->ended_by));
        *at++ = '"';
    }
    kpti_et_text_wrote(out, KPTI_PUT(at, "}}]}"));
}

void kpti_et_node_end_text(kpti_et_nodes *n, const kpti_et_node *node, const kpti_et_node_end *end,
                           kpti_et_text *out)
{
    out->failed |= node->text.failed;
    kpti_et_text_put(out, node->text.data, node->text.used);
    KPTI_ET_PUT(out, ",\"outputs\":");
    kpti_et_forms_put(&n->forms, out);
    put_own_attrs(n, node, end, out);
    put_extra(n, node, end, out);
}

/* --- nodes that are not operators --------------------------------------------------------------- */

void kpti_et_node_synthetic(kpti_et_text *out, const char *what, uint64_t id, uint64_t thread,
                            uint64_t os_tid)
{
    static const char nothing[] = "{\"values\":[],\"shapes\":[],\"types\":[],\"strides\":[]}";
    KPTI_ET_PUT(out, "{\"id\":");
    kpti_et_text_u64(out, id);
    KPTI_ET_PUT(out, ",\"name\":\"[pytorch|profiler|execution_trace|");
    kpti_et_text_put(out, what, strlen(what));
    KPTI_ET_PUT(out, "]\",\"ctrl_deps\":1,\"inputs\":");
    kpti_et_text_put(out, nothing, sizeof nothing - 1);
    KPTI_ET_PUT(out, ",\"outputs\":");
    kpti_et_text_put(out, nothing, sizeof nothing - 1);
    KPTI_ET_PUT(out, RF_ID "0" FW_PARENT "0" SEQ_ID "-1" SCOPE "7" TID);
    kpti_et_text_u64(out, thread);
    KPTI_ET_PUT(out, FW_TID "0" OP_SCHEMA KERNEL_BACKEND KERNEL_FILE TENSOR_RANGE "\"}");
    if (os_tid) {
        KPTI_ET_PUT(out, OURS);
        kpti_et_text_u64(out, os_tid);
        KPTI_ET_PUT(out, "}}");
    }
    KPTI_ET_PUT(out, "]}");
}
