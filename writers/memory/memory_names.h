/* memory_names.h: what the events of a memory recording refer to: symbols, stacks as nodes of a tree, pools and their
 * devices. They are read from the records of memory_records.h; texts are borrowed from them. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_NAMES_H
#define KPTI_WRITERS_MEMORY_MEMORY_NAMES_H

#include "abi/kpt_base.h"
#include "writers/memory/memory_records.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_symbol {
    kpt_str name;
    kpt_str file;
    uint32_t line;
} kpti_memory_symbol;

/* A stack is the number of its innermost node, or 0. */
typedef struct kpti_memory_node {
    uint32_t parent; /* number of the caller's node, which is smaller; 0: none */
    uint32_t symbol; /* index in symbols */
} kpti_memory_node;

/* A device or kind of memory. A file has a trace and a curve for each. */
typedef struct kpti_memory_device {
    char name[32];
    int32_t type;  /* in Kineto's numbering; 0: CPU memory */
    int32_t index; /* -1: there is only one */
    uint32_t slot;
    uint32_t space;
} kpti_memory_device;

/* Blocks of one device, and what a host reported about them. */
typedef struct kpti_pool_tags {
    int is_used;
    int is_told; /* 0: nothing was reported: the pool is one of Python's domains, or numpy's */
    int32_t type;
    int32_t index;
    uint64_t stream;
    kpt_str category; /* empty: not known */
    kpt_str owner;
    uint32_t
        slot; /* of the device, in the order in which devices appeared: does not change any more */
    uint32_t space;  /* address space: host memory is 0; others have the slot of their device */
    uint32_t device; /* index in devices, after kpti_memory_names_finish */
} kpti_pool_tags;

/* Initialized with zeroes. */
typedef struct kpti_memory_names {
    kpt_str *texts;
    uint64_t text_count;
    uint64_t text_capacity;
    kpti_memory_symbol *symbols;
    uint64_t symbol_count;
    uint64_t symbol_capacity;
    kpti_memory_node *nodes;
    uint64_t node_count;
    uint64_t node_capacity;
    kpti_pool_tags *pools; /* KPTI_MEMORY_POOL_COUNT */
    kpti_memory_device *devices;
    uint32_t device_count;
    uint32_t slot_count;
    int has_reported; /* at least one pool was reported by a host */
} kpti_memory_names;

/* Makes the pools, which stay where they are. Returns KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_memory_names_begin(kpti_memory_names *names);
/* Adds COUNT names from SIZE bytes, which must live as long as NAMES. Returns KPT_OK, KPT_E_INVALID if they are
 * damaged, or KPT_E_MEMORY. */
kpt_status kpti_memory_names_take(kpti_memory_names *names, const char *bytes, uint64_t size,
                                  uint32_t count);
/* Lists the devices of the names so far. After names were added it is called again. */
kpt_status kpti_memory_names_finish(kpti_memory_names *names);
void kpti_memory_names_free(kpti_memory_names *names);

/* Returns node NUMBER, which is not 0. */
static inline const kpti_memory_node *kpti_memory_node_at(const kpti_memory_names *names,
                                                          uint32_t number)
{
    return &names->nodes[number - 1];
}

#ifdef __cplusplus
}
#endif
#endif
