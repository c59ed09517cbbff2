#include "writers/memory/memory_tree.h"

#include <stdlib.h>

#include "core/base/u64_map.h"

typedef struct growing {
    kpti_memory_tree *tree;
    kpti_u64_map children; /* index of a node + 1, by parent and symbol */
    uint32_t capacity;
} growing;

/* Returns the index of PARENT's child at SYMBOL + 1, added if it is new, or 0 if there is no memory. */
static uint32_t child_of(growing *g, uint32_t parent, uint32_t symbol)
{
    kpti_memory_tree *t = g->tree;
    uint32_t *child = kpti_u64_map_at(&g->children, (uint64_t)parent << 32 | symbol);
    if (!child || *child) return child ? *child : 0;
    if (kpti_array_reach(&g->children.heap, &t->nodes, &g->capacity, t->count, sizeof *t->nodes) !=
        KPT_OK)
        return 0;
    t->nodes[t->count] = (kpti_memory_node){parent, symbol};
    return *child = ++t->count;
}

static int grow(growing *g, const kpti_memory_dump *dump)
{
    const kpt_symbols *all = dump->symbols;
    for (uint64_t i = 0; i < dump->stack_count; i++) {
        const kpt_symbol_span *span = &all->spans[i];
        uint32_t node = 0;
        for (uint64_t k = span->count; k-- > 0;) {
            node = child_of(g, node, all->frames[span->first + k]);
            if (!node) return 0;
        }
        g->tree->of_stack[i] = node;
    }
    return 1;
}

int kpti_memory_tree_make(kpti_memory_tree *tree, const kpti_memory_dump *dump)
{
    growing g = {.tree = tree};
    int whole;
    *tree = (kpti_memory_tree){.of_stack = calloc(dump->stack_count + 1, sizeof *tree->of_stack)};
    whole = tree->of_stack && grow(&g, dump);
    kpti_u64_map_free(&g.children);
    if (!whole) kpti_memory_tree_free(tree);
    return whole;
}

void kpti_memory_tree_free(kpti_memory_tree *tree)
{
    free(tree->nodes);
    free(tree->of_stack);
    *tree = (kpti_memory_tree){0};
}

uint32_t kpti_memory_node_of(const kpti_memory_tree *tree, const kpti_memory_dump *dump,
                             uint32_t stack)
{
    const uint64_t at = kpti_memory_stack_at(dump, stack);
    return at ? tree->of_stack[at - 1] : 0;
}
