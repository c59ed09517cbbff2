/* memory_tree.h: the stacks of a dump as a tree, in which common callers are stored once. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_TREE_H
#define KPTI_WRITERS_MEMORY_MEMORY_TREE_H

#include "writers/memory/memory_dump.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_node {
    uint32_t parent; /* index of the parent + 1; 0: no parent */
    uint32_t symbol; /* index in the dump's symbols */
} kpti_memory_node;

typedef struct kpti_memory_tree {
    kpti_memory_node *nodes; /* parents before their children */
    uint32_t count;
    uint32_t
        *of_stack; /* for each stack of the dump: index of its innermost node + 1; 0: empty stack */
} kpti_memory_tree;

/* Returns 0 if there is no memory; there is then nothing to free. */
int kpti_memory_tree_make(kpti_memory_tree *tree, const kpti_memory_dump *dump);
void kpti_memory_tree_free(kpti_memory_tree *tree);

/* Returns the index of STACK's innermost node + 1, or 0 if it has none. */
uint32_t kpti_memory_node_of(const kpti_memory_tree *tree, const kpti_memory_dump *dump,
                             uint32_t stack);

#ifdef __cplusplus
}
#endif
#endif
