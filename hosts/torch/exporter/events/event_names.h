/* event_names.h: the names of events as torch shows them, each text once, with a number from 1 on. No GIL. */
#ifndef KPTI_TORCH_EVENT_NAMES_H
#define KPTI_TORCH_EVENT_NAMES_H

#include "core/base/u64_map.h"
#include "hosts/torch/exporter/torch_names.h"

/* Zeroed at first. */
typedef struct kpti_event_names {
    kpti_heap heap;
    kpt_str *texts; /* copies, by number */
    uint32_t capacity;
    uint32_t count;
    kpti_u64_map number_of;  /* by the key of the text */
    kpti_u64_map of_call;    /* by function and line */
    kpti_u64_map of_module;  /* by the answer of a watched call */
    uint32_t *module_number; /* of a name; + 1 */
    uint32_t module_capacity;
    char *buffer;
    uint64_t buffer_capacity;
} kpti_event_names;

/* Return the number of a text, or of the name of the call A of THREAD, whose functions TORCH has; 0 if there is no
 * memory. */
uint32_t kpti_event_names_text(kpti_event_names *names, kpt_str text);
uint32_t kpti_event_names_call(kpti_event_names *names, kpti_torch_names *torch,
                               const kpt_thread *thread, const kpt_activity *a);

void kpti_event_names_free(kpti_event_names *names);

/* Returns the number + 1 of the module that the name NUMBER has, or 0. */
static inline uint32_t kpti_event_names_module(const kpti_event_names *names, uint32_t number)
{
    return number < names->module_capacity ? names->module_number[number] : 0;
}

#endif
