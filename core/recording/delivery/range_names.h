/* range_names.h: the names of the host's ranges that one delivery has met. A range has its name in its events, so that
 * names leave memory with the chunks. A delivery needs each name once, with an index. The table owns its copies. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_RANGE_NAMES_H
#define KPTI_CORE_RECORDING_DELIVERY_RANGE_NAMES_H

#include "abi/impl/kpti_impl.h"
#include "core/base/hash_table.h"
#include "core/recording/event.h"

typedef struct kpti_range_names {
    const kpti_env *env;
    kpti_hash_table table;
    uint32_t next; /* index of the next new name */
} kpti_range_names;

/* FIRST: the index of the first name. Allocates nothing. */
void kpti_range_names_init(kpti_range_names *names, const kpti_env *env, uint32_t first);
void kpti_range_names_free(kpti_range_names *names);

/* Returns the index of the name that the COUNT TEXT events from EVENTS on spell, in SCOPE, or 0 if there is no memory.
 * *TEXT receives the name, which stays until names are freed; *IS_NEW whether it was not met before. */
uint32_t kpti_range_names_find(kpti_range_names *names, const kpti_event *events, uint32_t count,
                               uint32_t scope, kpt_str *text, int *is_new);

#endif
