/* memory_tree.h: the stacks of a dump as a tree: what they have in common is there once. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_TREE_H
#define KPTI_WRITERS_MEMORY_MEMORY_TREE_H

#include "writers/memory/memory_dump.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_node {
    uint32_t parent; /* one more than its index; 0: none */
    uint32_t symbol; /* in the dump's symbols */
} kpti_memory_node;

typedef struct kpti_memory_tree {
    kpti_memory_node *nodes; /* parents before their children */
    uint32_t count;
    uint32_t *
        of_stack; /* for each stack of the dump one more than the index of its innermost node; 0: none */
} kpti_memory_tree;

/* 0: no memory; there is nothing to free then. */
int kpti_memory_tree_make(kpti_memory_tree *tree, const kpti_memory_dump *dump);
void kpti_memory_tree_free(kpti_memory_tree *tree);

/* One more than the index of STACK's innermost node; 0: it has none. */
uint32_t kpti_memory_node_of(const kpti_memory_tree *tree, const kpti_memory_dump *dump,
                             uint32_t stack);

#ifdef __cplusplus
}
#endif
#endif
