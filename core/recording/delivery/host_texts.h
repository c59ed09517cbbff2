/* host_texts.h: the texts of the host that one delivery has met: names of ranges, and inputs of operators and ranges. They are in
 * the events, so that they leave memory with the chunks. A delivery needs each text once, with an index. The table owns
 * its copies. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_HOST_TEXTS_H
#define KPTI_CORE_RECORDING_DELIVERY_HOST_TEXTS_H

#include "abi/impl/kpti_impl.h"
#include "core/base/hash_table.h"
#include "core/recording/event.h"

/* The scope of inputs. Ranges have KPT_SCOPE_*. */
enum { KPTI_SCOPE_INPUTS = KPT_SCOPE_MAX + 1 };

typedef struct kpti_host_text {
    kpt_str text;
    uint32_t scope;
    uint32_t is_delivered; /* the user's */
} kpti_host_text;

typedef struct kpti_host_texts {
    const kpti_env *env;
    kpti_host_text *texts;
    uint64_t count;
    uint64_t capacity;
    kpti_hash_table table; /* of positions in texts */
    uint32_t first;        /* index of the first text */
    char *spelled;         /* the last text that was looked for */
    uint64_t spelled_capacity;
} kpti_host_texts;

/* FIRST: the index of the first text. Allocates nothing. */
void kpti_host_texts_init(kpti_host_texts *texts, const kpti_env *env, uint32_t first);
void kpti_host_texts_free(kpti_host_texts *texts);

/* Returns the index of the text that the COUNT TEXT events from EVENTS on spell, in SCOPE, or 0 if there is no memory. */
uint32_t kpti_host_texts_find(kpti_host_texts *texts, const kpti_event *events, uint32_t count,
                              uint32_t scope);

/* Returns the text with INDEX, which find has returned. It is valid until find is called again. */
kpti_host_text *kpti_host_texts_at(kpti_host_texts *texts, uint32_t index);

#endif
