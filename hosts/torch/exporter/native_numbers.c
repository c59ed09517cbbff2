#include "hosts/torch/exporter/native_numbers.h"

#include "core/base/growable_array.h"

/* An open call at some depth of a thread. */
typedef struct level {
    uint64_t delivered; /* its id in the delivery */
    uint64_t call;      /* number of the Python call, or of the one around it */
    uint64_t op;        /* number of the operator; 0: it is none */
} level;

typedef struct kpti_native_track {
    level *levels; /* by depth */
    uint32_t capacity;
} track;

void kpti_native_numbers_free(kpti_native_numbers *n)
{
    for (uint32_t i = 0; i < n->track_capacity; i++)
        kpti_heap_give(&n->heap, n->tracks[i].levels, n->tracks[i].capacity * sizeof(level));
    kpti_heap_give(&n->heap, n->tracks, n->track_capacity * sizeof *n->tracks);
    n->tracks = NULL;
    n->track_capacity = 0;
}

/* Numbers a call or an operator, whose level is at OWN. A further part has the number of the first. */
static void number_level(kpti_native_numbers *n, level *own, uint64_t caller, kpt_activity *a)
{
    const int is_part =
        (a->flags & KPT_ACTIVITY_CONTINUED) && own->delivered == a->id && own->delivered;
    const level before = *own;
    *own = (level){a->id, caller, 0};
    if (kpti_is_python(a)) {
        own->call = is_part ? before.call : ++n->calls;
        a->id = own->call;
        a->parent_id = caller;
    } else if (a->kind == KPT_KIND_OPERATOR) {
        own->op = is_part ? before.op : ++n->operators;
        a->id = own->op;
    } else {
        a->id = 0;
    }
}

kpt_status kpti_native_number(kpti_native_numbers *n, kpt_activity *a)
{
    track *t;
    kpt_status status;
    if (a->kind == KPT_KIND_RANGE_BEGIN) {
        a->id = ++n->operators;
        return KPT_OK;
    }
    status =
        kpti_array_reach(&n->heap, &n->tracks, &n->track_capacity, a->thread, sizeof *n->tracks);
    if (status != KPT_OK) return status;
    t = &n->tracks[a->thread];
    status = kpti_array_reach(&n->heap, &t->levels, &t->capacity, a->depth, sizeof *t->levels);
    if (status != KPT_OK) return status;
    number_level(n, &t->levels[a->depth], a->depth ? t->levels[a->depth - 1].call : 0, a);
    return KPT_OK;
}
