#include "execution_trace/output/node_builder.h"

#include "core/base/growable_array.h"
#include "execution_trace/journal/value_read.h"

void kpti_et_tree_init(kpti_et_tree *tree, const kpti_heap *heap, kpti_out_file *out,
                       kpti_et_resources *resources)
{
    tree->heap = heap;
    tree->out = out;
    tree->resources = resources;
    kpti_et_nodes_init(&tree->nodes, heap);
    tree->threads.heap = *heap;
    tree->text.heap = heap;
    kpti_et_stack_table_init(&tree->stacks, heap);
}

void kpti_et_tree_free(kpti_et_tree *tree)
{
    for (uint32_t i = 0; i < tree->branch_capacity; i++) {
        kpti_et_branch *branch = &tree->branches[i];
        for (uint32_t j = 0; j < branch->capacity; j++)
            if (branch->nodes[j].text.heap) kpti_et_text_free(&branch->nodes[j].text);
        kpti_heap_give(tree->heap, branch->nodes, branch->capacity * sizeof *branch->nodes);
    }
    kpti_heap_give(tree->heap, tree->branches, tree->branch_capacity * sizeof *tree->branches);
    kpti_et_nodes_free(&tree->nodes);
    kpti_et_stack_table_free(&tree->stacks);
    kpti_u64_map_free(&tree->threads);
    kpti_et_text_free(&tree->text);
}

/* Begins a node. Returns the buffer for its text. */
static kpti_et_text *begin_text(kpti_et_tree *tree)
{
    kpti_et_text *text = &tree->text;
    kpti_et_text_put(text, tree->node_count ? ",\n" : "\n", tree->node_count ? 2 : 1);
    tree->node_count++;
    return text;
}

/* Ends a node, and passes the text on if there is enough of it. */
static void end_text(kpti_et_tree *tree)
{
    kpti_et_text *text = &tree->text;
    size_t passed;
    if (text->used < KPTI_OUT_SMALL_PIECE_BYTES) return;
    passed = kpti_out_pass(tree->out, text->data, text->used);
    text->used -= passed;
    memmove(text->data, text->data + passed, text->used);
}

static uint64_t new_id(kpti_et_tree *tree)
{
    return tree->nodes.forms.naming.tensors.next_id++;
}

static kpti_et_branch *branch_of(kpti_et_tree *tree, uint32_t stream)
{
    if (kpti_array_reach(tree->heap, &tree->branches, &tree->branch_capacity, stream,
                         sizeof *tree->branches) != KPT_OK) {
        tree->failed = 1;
        return NULL;
    }
    return &tree->branches[stream];
}

/* Returns the id of the parent for an operator that begins now on BRANCH. */
static uint64_t top_of(const kpti_et_branch *branch)
{
    return branch->count ? branch->nodes[branch->count - 1].id : branch->id;
}

/* Writes the thread's node, before the first operator of the thread. */
static void begin_thread(kpti_et_tree *tree, kpti_et_branch *branch, const kpti_et_item *item,
                         uint64_t thread)
{
    uint32_t *known = kpti_u64_map_at(&tree->threads, thread & (UINT64_MAX >> 1));
    if (known)
        *known = item->stream;
    else
        tree->failed = 1;
    branch->id = new_id(tree);
    kpti_et_node_synthetic(begin_text(tree), "thread", branch->id, thread, item->chunk->os_tid);
    end_text(tree);
}

/* Returns the innermost open node of a backward operator's forward thread, or 0 if that thread has no
 * operators yet. */
static uint64_t forward_parent(kpti_et_tree *tree, uint64_t forward_thread)
{
    const uint32_t *stream =
        forward_thread ? kpti_u64_map_at(&tree->threads, forward_thread & (UINT64_MAX >> 1)) : NULL;
    if (!stream || *stream >= tree->branch_capacity) return 0;
    return top_of(&tree->branches[*stream]);
}

/* --- data ---------------------------------------------------------------------------------------- */

typedef struct saving {
    kpti_et_resources *resources;
    uint64_t node;
} saving;

static void save_tensor(void *ctx, uint32_t index, const kpti_et_tensor_view *t)
{
    const saving *s = ctx;
    if (t->data)
        kpti_et_resources_put(s->resources, s->node, index, t->data, (size_t)t->data_bytes);
}

/* --- records ------------------------------------------------------------------------------------- */

/* Checks the COUNT values of ITEM, and the fields and attributes at BEHIND, its fixed part's end. The forms
 * take the values. Returns 1 if all are valid. */
static int is_whole(kpti_et_tree *tree, const kpti_et_item *item, const void *behind,
                    uint32_t count)
{
    const uint32_t attrs = kpti_et_more_of(item->record, behind).attr_count;
    const uint64_t *values_end = kpti_et_forms_take(&tree->nodes.forms, item,
                                                    kpti_et_values_of(item->record, behind), count);
    if (values_end && kpti_et_attrs_end(item, values_end, attrs)) return 1;
    tree->damaged++;
    return 0;
}

static void begin(kpti_et_tree *tree, const kpti_et_item *item)
{
    const kpti_et_begin *b = (const kpti_et_begin *)item->record;
    const kpti_et_function *function = kpti_et_item_function(item);
    kpti_et_branch *branch = branch_of(tree, item->stream);
    kpti_et_node *node;
    saving save;
    tree->damaged += !function;
    if (!branch || !function || !is_whole(tree, item, b + 1, b->value_count)) return;
    if (kpti_array_reach(tree->heap, &branch->nodes, &branch->capacity, branch->count,
                         sizeof *branch->nodes) != KPT_OK) {
        tree->failed = 1;
        return;
    }
    if (!branch->id) begin_thread(tree, branch, item, function->thread);
    node = &branch->nodes[branch->count];
    node->item = *item;
    node->text.heap = tree->heap;
    node->parent = top_of(branch);
    node->forward_parent = forward_parent(tree, function->forward_thread);
    node->stack = kpti_et_stack_table_row(&tree->stacks, b->stack);
    node->id = new_id(tree);
    branch->count++;
    kpti_et_node_begin(&tree->nodes, node);
    if (!(b->record.flags & KPTI_ET_ELEMENTS)) return;
    save = (saving){tree->resources, node->id};
    kpti_et_each_tensor(item, kpti_et_values_of(&b->record, b + 1), b->value_count, save_tensor,
                        &save);
}

/* Writes the node at AT of BRANCH and removes it from the list. The buffer of its text moves to the end,
 * for reuse. */
static void end_node(kpti_et_tree *tree, kpti_et_branch *branch, uint32_t at, kpti_et_node_end *end)
{
    end->unix_offset_ns = tree->unix_offset_ns;
    kpti_et_node_end_text(&tree->nodes, &branch->nodes[at], end, begin_text(tree));
    end_text(tree);
    branch->count--;
    if (at != branch->count) {
        const kpti_et_text text = branch->nodes[at].text;
        memmove(&branch->nodes[at], &branch->nodes[at + 1],
                (branch->count - at) * sizeof *branch->nodes);
        branch->nodes[branch->count].text = text;
    }
}

static void end(kpti_et_tree *tree, const kpti_et_item *item)
{
    const kpti_et_end *e = (const kpti_et_end *)item->record;
    kpti_et_branch *branch = e->stream < tree->branch_capacity ? &tree->branches[e->stream] : NULL;
    kpti_et_node_end how = {.item = item, .ns = e->record.ns};
    uint32_t at = branch ? branch->count : 0;
    while (at > 0 &&
           ((const kpti_et_begin *)branch->nodes[at - 1].item.record)->number != e->number)
        at--;
    if (at == 0 || !is_whole(tree, item, e + 1, e->value_count)) {
        tree->damaged += at == 0;
        return;
    }
    end_node(tree, branch, at - 1, &how);
}

static void end_all(kpti_et_tree *tree, int64_t ns, const char *ended_by)
{
    for (uint32_t i = 0; i < tree->branch_capacity; i++) {
        kpti_et_branch *branch = &tree->branches[i];
        while (branch->count) {
            kpti_et_node_end how = {.ns = ns, .ended_by = ended_by};
            (void)kpti_et_forms_take(&tree->nodes.forms, NULL, NULL, 0);
            end_node(tree, branch, branch->count - 1, &how);
        }
    }
}

void kpti_et_tree_take(kpti_et_tree *tree, const kpti_et_item *item)
{
    tree->last_ns = item->record->ns;
    switch (item->record->kind) {
    case KPTI_ET_BEGIN:
        begin(tree, item);
        break;
    case KPTI_ET_END:
        end(tree, item);
        break;
    case KPTI_ET_LOCATION:
        kpti_et_stack_table_place(&tree->stacks, item);
        break;
    case KPTI_ET_STACK:
        kpti_et_stack_table_stack(&tree->stacks, item);
        break;
    case KPTI_ET_STOP:
        end_all(tree, item->record->ns, "stop");
        break;
    default:
        break;
    }
}

void kpti_et_tree_end(kpti_et_tree *tree)
{
    end_all(tree, tree->last_ns, "kill");
    kpti_et_node_synthetic(begin_text(tree), "process", 1, 0, 0);
    tree->failed |= tree->nodes.forms.naming.tensors.failed;
}
