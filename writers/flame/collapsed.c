/* collapsed.c: collapsed stacks, which flame graph tools read: "thread;outer;inner 123". Each different stack
 * is a line with the time in microseconds spent in its last frame itself. Stacks are stored as a tree, so
 * memory grows with the number of different stacks, not of calls. Where there are many, the stacks of threads without
 * open calls are written early, most of which have ended; a thread that goes on has further lines of the same stacks,
 * which tools add up. Lines with the value 0 are left out. */
#include "writers/flame/collapsed.h"

#include "abi/kpt_text.h"
#include "core/base/utf8.h"
#include "writers/encode/json_text.h"
#include "writers/encode/string_table.h"
#include "writers/format/nested_frames.h"
#include "writers/format/qualified_name.h"

enum { NS_PER_US = 1000 };
/* Longer names are cut, as in the other formats. */
enum { MAX_NAME = 16 * 1024 };

/* A node's frame is the number of a function, or, with this bit, of a text: a thread or a span. */
#define TEXT_BIT (UINT32_C(1) << 31)

/* Invariant: the children of a node are in its list, the last one used first, or in the table, or in both; the list has
 * at most LISTED. Most nodes have few children, and a slot of the table takes more than a node. */
typedef struct node {
    uint32_t parent; /* 0 is the root of all threads */
    uint32_t frame;
    uint32_t first_child; /* of the list; 0: none */
    uint32_t next;        /* in the parent's list */
    uint64_t own_ns;
} node;

enum { LISTED = 4 };

typedef struct track_state {
    uint32_t root; /* 0: it has no stacks, or they are written */
    uint32_t open; /* the innermost open frame, or the root */
    int64_t last_ns;
    kpt_str name; /* the tracer's; empty if the thread was not delivered */
} track_state;

/* So many nodes may there be before those of idle threads are written. */
enum { MAX_NODES = 1 << 18 };

typedef struct collapsed {
    kpti_writer base;
    kpti_frames frames;
    kpti_fragments names;
    kpti_text_table texts;
    uint32_t *roots; /* by number of a text: the root of the threads with this name, or 0 */
    uint32_t root_capacity;
    kpti_u64_map children; /* by parent and frame, those that are in no list */
    node *nodes;
    uint32_t node_capacity;
    uint32_t node_count;
    uint32_t most_nodes; /* count at which those of idle threads are written */
    track_state *track_states;
    uint32_t track_capacity;
    uint32_t *path; /* frames of the line that is being written */
    uint32_t path_capacity;
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
    char space[KPTI_MAX_QUALIFIED];
    const kpt_str shown = kpti_qualified_name(name, space);
    size_t size = shown.size < MAX_NAME ? (size_t)shown.size : MAX_NAME;
    char *begin = kpti_fragments_reserve(&w->names, size * KPTI_UTF8_MAX_GROWTH + 1);
    if (!begin) return KPT_E_MEMORY;
    return kpti_fragments_set(&w->names, name->index, begin,
                              (size_t)(put_name(begin, shown) - begin), 0);
}

/* --- the tree --------------------------------------------------------------------------------- */

/* Removes the last child from the list of PARENT, which is full, and adds it to the table. */
static kpt_status move_last(collapsed *w, uint32_t parent)
{
    uint32_t *link = &w->nodes[parent].first_child;
    uint32_t last;
    uint32_t *known;
    while (w->nodes[*link].next)
        link = &w->nodes[*link].next;
    last = *link;
    known = kpti_u64_map_at(&w->children, (uint64_t)parent << 32 | w->nodes[last].frame);
    if (!known) return KPT_E_MEMORY;
    *known = last;
    *link = 0;
    return KPT_OK;
}

/* Puts CHILD, which is not in the list of PARENT, in front of it. */
static void list(collapsed *w, uint32_t parent, uint32_t child)
{
    w->nodes[child].next = w->nodes[parent].first_child;
    w->nodes[parent].first_child = child;
}

static kpt_status add_node(collapsed *w, uint32_t parent, uint32_t frame, uint32_t *out)
{
    const kpt_status status = kpti_array_reach(&w->base.heap, &w->nodes, &w->node_capacity,
                                               w->node_count, sizeof *w->nodes);
    if (status != KPT_OK) return status;
    *out = w->node_count++;
    w->nodes[*out] = (node){parent, frame, 0, 0, 0};
    return KPT_OK;
}

/* Finds or adds a child that is not in the list of PARENT, which is full if IS_FULL. */
static kpt_status find_unlisted(collapsed *w, uint32_t parent, uint32_t frame, int is_full,
                                uint32_t *out)
{
    const uint64_t key = (uint64_t)parent << 32 | frame;
    const uint32_t *known = is_full ? kpti_u64_map_at(&w->children, key) : NULL;
    kpt_status status = KPT_OK;
    if (is_full && !known) return KPT_E_MEMORY;
    *out = known ? *known : 0;
    if (!*out) status = add_node(w, parent, frame, out);
    if (status == KPT_OK && is_full) status = move_last(w, parent);
    if (status == KPT_OK) list(w, parent, *out);
    return status;
}

static kpt_status enter(collapsed *w, uint32_t parent, uint32_t frame, uint32_t *out)
{
    uint32_t *link = &w->nodes[parent].first_child;
    int count = 0;
    for (; *link; link = &w->nodes[*link].next, count++) {
        const uint32_t child = *link;
        if (w->nodes[child].frame != frame) continue;
        *out = child;
        if (!count) return KPT_OK;
        *link = w->nodes[child].next;
        list(w, parent, child);
        return KPT_OK;
    }
    return find_unlisted(w, parent, frame, count == LISTED, out);
}

/* Gives the thread the root of its name. */
static kpt_status find_root(collapsed *w, track_state *l)
{
    const kpt_str name = l->name.size ? l->name : kpt_str_of("unknown");
    uint32_t number = 0;
    kpt_status status = kpti_text_table_at(&w->texts, name, put_name, &number);
    if (status == KPT_OK)
        status =
            kpti_array_reach(&w->base.heap, &w->roots, &w->root_capacity, number, sizeof *w->roots);
    if (status == KPT_OK && !w->roots[number])
        status = add_node(w, 0, number | TEXT_BIT, &w->roots[number]);
    if (status == KPT_OK) l->root = l->open = w->roots[number];
    return status;
}

static kpt_status reach_track(collapsed *w, uint32_t thread)
{
    return kpti_array_reach(&w->base.heap, &w->track_states, &w->track_capacity, thread,
                            sizeof *w->track_states);
}

static kpt_status take_thread(kpti_writer *writer, const kpt_thread *thread)
{
    collapsed *w = (collapsed *)writer;
    const kpt_status status = reach_track(w, thread->index);
    if (status == KPT_OK) w->track_states[thread->index].name = thread->name;
    return status;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Writes the frames of NODE to w->path, the innermost first. Returns their number in *DEPTH. */
static kpt_status find_path(collapsed *w, uint32_t number, uint32_t *depth)
{
    kpt_status status = KPT_OK;
    for (*depth = 0; number && status == KPT_OK; number = w->nodes[number].parent) {
        status =
            kpti_array_reach(&w->base.heap, &w->path, &w->path_capacity, *depth, sizeof *w->path);
        if (status == KPT_OK) w->path[(*depth)++] = w->nodes[number].frame;
    }
    return status;
}

static kpt_status put_line(collapsed *w, uint32_t number)
{
    static const kpti_fragment unknown = {"unknown", 7, 0};
    uint64_t ns = w->nodes[number].own_ns;
    uint64_t us = ns / NS_PER_US + (ns % NS_PER_US >= NS_PER_US / 2);
    uint32_t depth;
    kpt_status status;
    char *at;
    if (!us) return KPT_OK;
    status = find_path(w, number, &depth);
    if (status != KPT_OK) return status;
    while (depth--) {
        int is_text = (w->path[depth] & TEXT_BIT) != 0;
        kpti_fragment name = kpti_fragments_get(is_text ? &w->texts.texts : &w->names,
                                                w->path[depth] & ~TEXT_BIT, unknown);
        kpti_out_put(&w->base.out, name.text, name.size);
        kpti_out_put(&w->base.out, depth ? ";" : " ", 1);
    }
    at = kpti_put_u64(kpti_out_reserve(&w->base.out, KPTI_JSON_MAX_NUMBER), us);
    *at++ = '\n';
    kpti_out_wrote(&w->base.out, at);
    return KPT_OK;
}

/* Sets MOVED, which is zeroed, to the new numbers of the nodes of threads that have open calls. */
static uint32_t number_open(const collapsed *w, uint32_t *moved)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < w->track_capacity; i++)
        if (w->track_states[i].open != w->track_states[i].root) moved[w->track_states[i].root] = 1;
    for (uint32_t i = 1; i < w->node_count; i++) /* parents have lower numbers */
        if (w->nodes[i].parent ? moved[w->nodes[i].parent] : moved[i]) moved[i] = count++;
    return count;
}

/* Numbers the texts of the first COUNT nodes anew, and forgets the others. */
static kpt_status renew_texts(collapsed *w, uint32_t count)
{
    kpti_text_table old = w->texts;
    kpt_status status = KPT_OK;
    w->texts =
        (kpti_text_table){.numbers = {.heap = w->base.heap}, .texts = {.heap = w->base.heap}};
    if (w->root_capacity) memset(w->roots, 0, w->root_capacity * sizeof *w->roots);
    for (uint32_t i = 1; i < count && status == KPT_OK; i++) {
        node *n = &w->nodes[i];
        const kpti_fragment no_text = {"", 0, 0};
        kpti_fragment text;
        uint32_t number = 0;
        if (!(n->frame & TEXT_BIT)) continue;
        text = kpti_fragments_get(&old.texts, n->frame & ~TEXT_BIT, no_text);
        status = kpti_text_table_at(&w->texts, (kpt_str){text.text, text.size}, put_name, &number);
        n->frame = number | TEXT_BIT;
        if (status == KPT_OK && !n->parent)
            status = kpti_array_reach(&w->base.heap, &w->roots, &w->root_capacity, number,
                                      sizeof *w->roots);
        if (status == KPT_OK && !n->parent) w->roots[number] = i;
    }
    kpti_text_table_free(&old);
    return status;
}

/* Makes the lists and the table of children for the first COUNT nodes. */
static kpt_status renew_children(collapsed *w, uint32_t count)
{
    kpt_status status = KPT_OK;
    kpti_u64_map_free(&w->children);
    for (uint32_t i = 1; i < count; i++)
        w->nodes[i].first_child = w->nodes[i].next = 0;
    for (uint32_t i = 1; i < count && status == KPT_OK; i++) {
        const uint32_t parent = w->nodes[i].parent;
        int listed = 0;
        if (!parent) continue;
        for (uint32_t at = w->nodes[parent].first_child; at; at = w->nodes[at].next)
            listed++;
        if (listed == LISTED) status = move_last(w, parent);
        if (status == KPT_OK) list(w, parent, i);
    }
    return status;
}

/* Writes the stacks of the threads that have no open calls, and forgets them. */
static kpt_status write_idle(collapsed *w)
{
    const size_t bytes = w->node_count * sizeof(uint32_t);
    uint32_t *moved = kpti_heap_take_zeroed(&w->base.heap, bytes);
    kpt_status status = KPT_OK;
    uint32_t count;
    if (!moved) return KPT_E_MEMORY;
    count = number_open(w, moved);
    for (uint32_t i = 1; i < w->node_count && status == KPT_OK; i++)
        if (!moved[i]) status = put_line(w, i);
    for (uint32_t i = 1; i < w->node_count; i++) {
        if (!moved[i]) continue;
        w->nodes[moved[i]] = w->nodes[i];
        w->nodes[moved[i]].parent = moved[w->nodes[i].parent];
    }
    for (uint32_t i = 0; i < w->track_capacity; i++) {
        w->track_states[i].root = moved[w->track_states[i].root];
        w->track_states[i].open = moved[w->track_states[i].open];
    }
    kpti_heap_give(&w->base.heap, moved, bytes);
    w->node_count = count;
    w->most_nodes = 2 * count > MAX_NODES ? 2 * count : MAX_NODES;
    if (status == KPT_OK) status = renew_texts(w, count);
    return status == KPT_OK ? renew_children(w, count) : status;
}

/* --- calls ------------------------------------------------------------------------------------ */

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
    kpt_status status = reach_track(w, thread);
    if (status == KPT_OK && w->node_count >= w->most_nodes) status = write_idle(w);
    if (status == KPT_OK && !w->track_states[thread].root)
        status = find_root(w, &w->track_states[thread]);
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

static kpt_status begin(kpti_writer *writer, const kpti_writer_options *options)
{
    collapsed *w = (collapsed *)writer;
    kpt_status status = kpti_frames_init(&w->frames, &frame_ops, writer);
    (void)options;
    w->names.heap = w->children.heap = writer->heap;
    w->texts.numbers.heap = w->texts.texts.heap = writer->heap;
    w->node_count = 1;
    w->most_nodes = MAX_NODES;
    if (status != KPT_OK) return status;
    return kpti_array_reach(&writer->heap, &w->nodes, &w->node_capacity, 0, sizeof *w->nodes);
}

static kpt_status end(kpti_writer *writer, const kpt_stats *stats)
{
    collapsed *w = (collapsed *)writer;
    kpt_status status = kpti_frames_end(&w->frames);
    (void)stats;
    for (uint32_t i = 1; i < w->node_count && status == KPT_OK; i++)
        status = put_line(w, i);
    return status;
}

static void release(kpti_writer *writer)
{
    collapsed *w = (collapsed *)writer;
    kpti_heap_give(&writer->heap, w->nodes, w->node_capacity * sizeof *w->nodes);
    kpti_heap_give(&writer->heap, w->track_states, w->track_capacity * sizeof *w->track_states);
    kpti_heap_give(&writer->heap, w->roots, w->root_capacity * sizeof *w->roots);
    kpti_heap_give(&writer->heap, w->path, w->path_capacity * sizeof *w->path);
    kpti_fragments_free(&w->names);
    kpti_text_table_free(&w->texts);
    kpti_u64_map_free(&w->children);
    kpti_frames_free(&w->frames);
}

static const kpti_format_ops ops = {
    sizeof(collapsed), begin, take_name, take_thread, take_call, take_point, end,
    release,           NULL,  NULL,      NULL,        NULL};

const kpti_format kpti_format_collapsed = {
    "collapsed stacks", ".collapsed", KPT_ORDER_TIME, &ops, 0, 0, 0};
