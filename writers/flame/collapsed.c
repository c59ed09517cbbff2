/* collapsed.c: collapsed stacks, which flame graph tools read: "thread;outer;inner 123". Each different stack
 * is a line with the time in microseconds spent in its last frame itself. Stacks are stored as a tree, so
 * memory grows with the number of different stacks, not of calls. Lines with the value 0 are left out. */
#include "writers/flame/collapsed.h"

#include "abi/kpt_text.h"
#include "core/base/utf8.h"
#include "writers/encode/json_text.h"
#include "writers/encode/string_table.h"
#include "writers/format/nested_frames.h"

enum { NS_PER_US = 1000 };
/* Longer names are cut, as in the other formats. */
enum { MAX_NAME = 16 * 1024 };

/* A node's frame is the number of a function, or, with this bit, of a text: a thread or a span. */
#define TEXT_BIT (UINT32_C(1) << 31)

typedef struct node {
    uint32_t parent; /* 0 is the root of all threads */
    uint32_t frame;
    uint32_t depth;
    uint32_t last_child; /* a cache: the next child is usually the same */
    uint64_t own_ns;
} node;

typedef struct track_state {
    uint32_t root; /* 0: the thread was not delivered */
    uint32_t open; /* the innermost open frame, or the root */
    int64_t last_ns;
} track_state;

typedef struct collapsed {
    kpti_writer base;
    kpti_frames frames;
    kpti_fragments names;
    kpti_text_table texts;
    kpti_u64_map children; /* by parent and frame */
    node *nodes;
    uint32_t node_capacity;
    uint32_t node_count;
    track_state *track_states;
    uint32_t track_capacity;
} collapsed;

/* --- names ------------------------------------------------------------------------------------ */

/* A semicolon would end the frame, and a line end the stack. */
static char *put_name(char *out, kpt_str text)
{
    size_t size = text.size < MAX_NAME ? (size_t)text.size : MAX_NAME;
    char *end = kpti_utf8_copy(out, text.data, text.data ? size : 0);
    for (char *at = out; at < end; at++) {
        if (*at == ';') *at = ':';
        if ((unsigned char)*at < 0x20 || *at == 0x7F) *at = ' ';
    }
    return end;
}

static kpt_status take_name(kpti_writer *writer, const kpt_name *name)
{
    collapsed *w = (collapsed *)writer;
    kpt_str shown = kpti_shown_name(name);
    size_t size = shown.size < MAX_NAME ? (size_t)shown.size : MAX_NAME;
    char *begin = kpti_fragments_reserve(&w->names, size * KPTI_UTF8_MAX_GROWTH + 1);
    if (!begin) return KPT_E_MEMORY;
    return kpti_fragments_set(&w->names, name->index, begin,
                              (size_t)(put_name(begin, shown) - begin), 0);
}

/* --- the tree --------------------------------------------------------------------------------- */

static kpt_status add_node(collapsed *w, uint32_t parent, uint32_t frame, uint32_t *out)
{
    uint32_t *known = kpti_u64_map_at(&w->children, (uint64_t)parent << 32 | frame);
    kpt_status status;
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        status = kpti_array_reach(&w->base.heap, &w->nodes, &w->node_capacity, w->node_count,
                                  sizeof *w->nodes);
        if (status != KPT_OK) return status;
        w->nodes[w->node_count] =
            (node){parent, frame, parent ? w->nodes[parent].depth + 1 : 1, 0, 0};
        *known = w->node_count++;
    }
    *out = w->nodes[parent].last_child = *known;
    return KPT_OK;
}

static inline kpt_status enter(collapsed *w, uint32_t parent, uint32_t frame, uint32_t *out)
{
    uint32_t last = w->nodes[parent].last_child;
    if (!last || w->nodes[last].frame != frame) return add_node(w, parent, frame, out);
    *out = last;
    return KPT_OK;
}

static kpt_status begin_thread(collapsed *w, uint32_t thread, kpt_str name)
{
    uint32_t number = 0;
    kpt_status status = kpti_array_reach(&w->base.heap, &w->track_states, &w->track_capacity,
                                         thread, sizeof *w->track_states);
    if (status == KPT_OK) status = kpti_text_table_at(&w->texts, name, put_name, &number);
    if (status != KPT_OK || w->track_states[thread].root) return status;
    status = enter(w, 0, number | TEXT_BIT, &w->track_states[thread].root);
    w->track_states[thread].open = w->track_states[thread].root;
    return status;
}

static kpt_status take_thread(kpti_writer *writer, const kpt_thread *thread)
{
    return begin_thread((collapsed *)writer, thread->index, thread->name);
}

/* Adds the time since the thread's last event to the frame that was innermost. */
static void spend(collapsed *w, track_state *l, int64_t ns)
{
    if (l->open != l->root && ns > l->last_ns)
        w->nodes[l->open].own_ns += (uint64_t)ns - (uint64_t)l->last_ns;
    l->last_ns = ns;
}

static kpt_status open_frame(kpti_writer *writer, const kpt_activity *at, const kpti_note *span)
{
    collapsed *w = (collapsed *)writer;
    uint32_t thread = at->thread;
    uint32_t name = at->name;
    kpt_status status = KPT_OK;
    if (thread >= w->track_capacity || !w->track_states[thread].root)
        status = begin_thread(w, thread, kpt_str_of("unknown"));
    if (status == KPT_OK && span) {
        status = kpti_text_table_at(&w->texts, span->name, put_name, &name);
        name |= TEXT_BIT;
    }
    if (status != KPT_OK) return status;
    spend(w, &w->track_states[thread], at->start_ns);
    return enter(w, w->track_states[thread].open, name, &w->track_states[thread].open);
}

static kpt_status close_frame(kpti_writer *writer, uint32_t thread, int64_t ns,
                              const kpt_activity *call)
{
    collapsed *w = (collapsed *)writer;
    track_state *l = thread < w->track_capacity ? &w->track_states[thread] : NULL;
    (void)call;
    if (!l || l->open == l->root) return KPT_OK;
    spend(w, l, ns);
    l->open = w->nodes[l->open].parent;
    return KPT_OK;
}

static const kpti_frame_ops frame_ops = {open_frame, close_frame};

static kpt_status take_call(kpti_writer *writer, const kpt_activity *call)
{
    return kpti_frames_call(&((collapsed *)writer)->frames, call);
}

static kpt_status take_point(kpti_writer *writer, const kpt_activity *point, const kpti_note *note)
{
    return kpti_frames_point(&((collapsed *)writer)->frames, point, note);
}

/* --- the file --------------------------------------------------------------------------------- */

/* PATH has space for the deepest stack. */
static void put_line(collapsed *w, uint32_t number, uint32_t *path)
{
    static const kpti_fragment unknown = {"unknown", 7, 0};
    uint64_t ns = w->nodes[number].own_ns;
    uint64_t us = ns / NS_PER_US + (ns % NS_PER_US >= NS_PER_US / 2);
    uint32_t depth = 0;
    char *at;
    if (!us) return;
    for (; number; number = w->nodes[number].parent)
        path[depth++] = w->nodes[number].frame;
    while (depth--) {
        int is_text = (path[depth] & TEXT_BIT) != 0;
        kpti_fragment name = kpti_fragments_get(is_text ? &w->texts.texts : &w->names,
                                                path[depth] & ~TEXT_BIT, unknown);
        kpti_out_put(&w->base.out, name.text, name.size);
        kpti_out_put(&w->base.out, depth ? ";" : " ", 1);
    }
    at = kpti_put_u64(kpti_out_reserve(&w->base.out, KPTI_JSON_MAX_NUMBER), us);
    *at++ = '\n';
    kpti_out_wrote(&w->base.out, at);
}

static kpt_status begin(kpti_writer *writer, const kpti_writer_options *options)
{
    collapsed *w = (collapsed *)writer;
    kpt_status status = kpti_frames_init(&w->frames, &frame_ops, writer);
    (void)options;
    w->names.heap = w->children.heap = writer->heap;
    w->texts.numbers.heap = w->texts.texts.heap = writer->heap;
    w->node_count = 1;
    if (status != KPT_OK) return status;
    return kpti_array_reach(&writer->heap, &w->nodes, &w->node_capacity, 0, sizeof *w->nodes);
}

static kpt_status end(kpti_writer *writer, const kpt_stats *stats)
{
    collapsed *w = (collapsed *)writer;
    kpt_status status = kpti_frames_end(&w->frames);
    uint32_t deepest = 1;
    uint32_t *path;
    (void)stats;
    for (uint32_t i = 1; i < w->node_count; i++)
        if (w->nodes[i].depth > deepest) deepest = w->nodes[i].depth;
    path = kpti_heap_take(&writer->heap, deepest * sizeof *path);
    if (!path) return KPT_E_MEMORY;
    for (uint32_t i = 1; i < w->node_count && status == KPT_OK; i++)
        put_line(w, i, path);
    kpti_heap_give(&writer->heap, path, deepest * sizeof *path);
    return status;
}

static void release(kpti_writer *writer)
{
    collapsed *w = (collapsed *)writer;
    kpti_heap_give(&writer->heap, w->nodes, w->node_capacity * sizeof *w->nodes);
    kpti_heap_give(&writer->heap, w->track_states, w->track_capacity * sizeof *w->track_states);
    kpti_fragments_free(&w->names);
    kpti_text_table_free(&w->texts);
    kpti_u64_map_free(&w->children);
    kpti_frames_free(&w->frames);
}

static const kpti_format_ops ops = {
    sizeof(collapsed), begin, take_name, take_thread, take_call, take_point, end,
    release,           NULL,  NULL,      NULL,        NULL};

const kpti_format kpti_format_collapsed = {
    "collapsed stacks", ".collapsed", KPT_ORDER_TIME, &ops, 0, 0};
