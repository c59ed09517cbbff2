#include "node_text.h"

#include "value_read.h"

#define NUMBER(name, type) "{\"name\":\"" name "\",\"type\":\"" type "\",\"value\":"
#define STRING(name)       NUMBER(name, "string") "\""
/* What all nodes have; the numbers come between. */
#define RF_ID          ",\"attrs\":[" NUMBER("rf_id", "uint64")
#define FW_PARENT      "}," NUMBER("fw_parent", "uint64")
#define SEQ_ID         "}," NUMBER("seq_id", "int64")
#define SCOPE          "}," NUMBER("scope", "uint64")
#define TID            "}," NUMBER("tid", "uint64")
#define FW_TID         "}," NUMBER("fw_tid", "uint64")
#define OP_SCHEMA      "}," STRING("op_schema")
#define KERNEL_BACKEND "\"}," STRING("kernel_backend")
#define KERNEL_FILE    "\"}," STRING("kernel_file")
#define TENSOR_RANGE   "\"}," STRING("tensor_range")
#define OURS           "," NUMBER("kpytrace", "map") "{\"os_tid\":"
#define START          ",\"start_ns\":"
#define DURATION       ",\"dur_ns\":"

/* --- begin --------------------------------------------------------------------------------------- */

void kpti_et_node_begin(kpti_et_naming *n, kpti_et_node *node)
{
    const kpti_et_begin *b = (const kpti_et_begin *)node->item.record;
    kpti_et_text *out = &node->text;
    out->used = 0;
    KPTI_ET_PUT(out, "{\"id\":");
    kpti_et_text_u64(out, node->id);
    KPTI_ET_PUT(out, ",\"name\":\"");
    kpti_et_pieces_put(&n->pieces, out, &node->item, b->name);
    KPTI_ET_PUT(out, "\",\"ctrl_deps\":");
    kpti_et_text_u64(out, node->parent);
    KPTI_ET_PUT(out, ",\"inputs\":");
    kpti_et_put_values(n, out, &node->item, (const uint64_t *)(b + 1), b->value_count);
    KPTI_ET_PUT(out, ",\"outputs\":");
}

/* --- end ----------------------------------------------------------------------------------------- */

/* Places as the trace has them, in JSON within a string. */
typedef struct ranges {
    kpti_et_text *out;
    int any;
} ranges;

static void put_range(void *ctx, uint32_t place, const kpti_et_tensor_view *t)
{
    ranges *r = ctx;
    if (!t->range) return;
    kpti_et_text_put(r->out, r->any ? ",\\\"" : "{\\\"", 3);
    r->any = 1;
    kpti_et_text_u64(r->out, place);
    KPTI_ET_PUT(r->out, "\\\":[");
    for (int i = 0; i < 2; i++) {
        if (i) kpti_et_text_char(r->out, ',');
        if (t->flags & KPTI_ET_UNSIGNED)
            kpti_et_text_u64(r->out, t->range[i]);
        else
            kpti_et_text_i64(r->out, (int64_t)t->range[i]);
    }
    kpti_et_text_char(r->out, ']');
}

/* The attributes that the host gave, behind the COUNT values at AT. */
static void put_attrs(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                      const uint64_t *at, uint32_t count, uint32_t attr_count)
{
    at = attr_count ? kpti_et_values_end(item, at, count) : at;
    for (uint32_t i = 0; i < attr_count; i++) {
        const uint32_t type = (uint32_t)(*at >> 32);
        const kpt_str type_text = kpti_et_item_text(item, type);
        KPTI_ET_PUT(out, ",{\"name\":\"");
        kpti_et_pieces_put(&n->pieces, out, item, (uint32_t)*at);
        KPTI_ET_PUT(out, "\",\"type\":\"");
        kpti_et_pieces_put(&n->pieces, out, item, type);
        KPTI_ET_PUT(out, "\",\"value\":");
        kpti_et_put_value(n, out, item, at + 1,
                          type_text.size == 6 && memcmp(type_text.data, "uint64", 6) == 0);
        kpti_et_text_char(out, '}');
        at = kpti_et_value_end(item, at + 1);
    }
}

/* Six numbers and what is around them, in a room that is asked for once. */
#define NUMBERS RF_ID FW_PARENT SEQ_ID SCOPE TID FW_TID OP_SCHEMA
enum { MOST_NUMBERS = sizeof NUMBERS + (size_t)6 * KPTI_JSON_MOST_NUMBER };

/* torch's own, in its order. */
static void put_own_attrs(kpti_et_naming *n, const kpti_et_node *node, kpti_et_text *out)
{
    const kpti_et_item *item = &node->item;
    const kpti_et_begin *b = (const kpti_et_begin *)item->record;
    ranges r = {out, 0};
    char *at = kpti_et_text_room(out, MOST_NUMBERS);
    if (!at) return;
    at = kpti_put_u64(KPTI_PUT(at, RF_ID), b->record_id);
    at = kpti_put_u64(KPTI_PUT(at, FW_PARENT), node->forward_parent);
    at = kpti_put_i64(KPTI_PUT(at, SEQ_ID), b->sequence);
    at = kpti_put_u64(KPTI_PUT(at, SCOPE), b->scope);
    at = kpti_put_u64(KPTI_PUT(at, TID), b->thread);
    at = kpti_put_u64(KPTI_PUT(at, FW_TID), b->forward_thread);
    kpti_et_text_wrote(out, KPTI_PUT(at, OP_SCHEMA));
    kpti_et_pieces_put(&n->pieces, out, item, b->schema);
    KPTI_ET_PUT(out, KERNEL_BACKEND);
    kpti_et_pieces_put(&n->pieces, out, item, b->kernel_backend);
    KPTI_ET_PUT(out, KERNEL_FILE);
    kpti_et_pieces_put(&n->pieces, out, item, b->kernel_file);
    KPTI_ET_PUT(out, TENSOR_RANGE);
    if (b->record.flags & KPTI_ET_ELEMENTS)
        kpti_et_each_tensor(item, (const uint64_t *)(b + 1), b->value_count, put_range, &r);
    if (r.any) kpti_et_text_char(out, '}');
    KPTI_ET_PUT(out, "\"}");
}

/* Ours, in one attribute that others pass over. */
static void put_extra(const kpti_et_node *node, kpti_et_text *out, const kpti_et_node_end *end)
{
    const kpti_et_begin *b = (const kpti_et_begin *)node->item.record;
    char *at =
        kpti_et_text_room(out, sizeof OURS START DURATION + (size_t)3 * KPTI_JSON_MOST_NUMBER);
    if (!at) return;
    at = kpti_put_u64(KPTI_PUT(at, OURS), node->item.chunk->os_tid);
    at = kpti_put_i64(KPTI_PUT(at, START),
                      (int64_t)((uint64_t)b->record.ns + (uint64_t)end->unix_offset_ns));
    at = kpti_put_u64(KPTI_PUT(at, DURATION),
                      end->ns > b->record.ns ? (uint64_t)end->ns - (uint64_t)b->record.ns : 0);
    kpti_et_text_wrote(out, at);
    if (b->external_id) {
        KPTI_ET_PUT(out, ",\"ext_id\":");
        kpti_et_text_u64(out, b->external_id);
    }
    if (node->stack) {
        KPTI_ET_PUT(out, ",\"stack\":");
        kpti_et_text_u64(out, node->stack - 1);
    }
    if (end->ended_by) {
        KPTI_ET_PUT(out, ",\"ended_by\":\"");
        kpti_et_text_put(out, end->ended_by, strlen(end->ended_by));
        kpti_et_text_char(out, '"');
    }
    KPTI_ET_PUT(out, "}}");
}

void kpti_et_node_end_text(kpti_et_naming *n, kpti_et_node *node, const kpti_et_node_end *end)
{
    const kpti_et_begin *b = (const kpti_et_begin *)node->item.record;
    const kpti_et_end *e = end->item ? (const kpti_et_end *)end->item->record : NULL;
    kpti_et_text *out = &node->text;
    kpti_et_put_values(n, out, e ? end->item : &node->item, e ? (const uint64_t *)(e + 1) : NULL,
                       e ? e->value_count : 0);
    put_own_attrs(n, node, out);
    put_attrs(n, out, &node->item, (const uint64_t *)(b + 1), b->value_count, b->attr_count);
    if (e) {
        put_attrs(n, out, end->item, (const uint64_t *)(e + 1), e->value_count, e->attr_count);
        if (e->record.flags & KPTI_ET_RAISED) {
            KPTI_ET_PUT(out, "," STRING("error"));
            kpti_et_pieces_put(&n->pieces, out, end->item, e->error);
            KPTI_ET_PUT(out, "\"}");
        }
    }
    put_extra(node, out, end);
    KPTI_ET_PUT(out, "]}");
}

/* --- nodes that are no operators ----------------------------------------------------------------- */

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
