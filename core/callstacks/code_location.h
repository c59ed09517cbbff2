/* code_location.h: the table of code locations, which contains each location of a stack frame once.
 * A Python location is a function and an instruction. Its line and columns are computed when it is
 * added, so the code object may be freed.
 *
 * The process has one table, which only grows, like the function table. A location never changes
 * after its number was returned, except for the function of a native location, which is looked up
 * when it is first needed. */
#ifndef KPTI_CORE_CALLSTACKS_CODE_LOCATION_H
#define KPTI_CORE_CALLSTACKS_CODE_LOCATION_H

#include <stdatomic.h>

#include "abi/kpt_traceback.h"

typedef struct kpti_code_location {
    uint32_t chain; /* used by the intern table */
    uint32_t kind;  /* KPT_SYMBOL_* */
    uint64_t where; /* a Python frame's instruction offset in bytes; a native frame's address */
    _Atomic uint32_t function;
    uint32_t line;
    uint32_t end_line;
    uint32_t column;
    uint32_t end_column;
} kpti_code_location;

/* Finds or adds a location; the chain field is ignored. Returns 0 if there is no memory or no
 * number left. */
uint32_t kpti_code_location_intern(const kpti_code_location *location);
/* Returns the location with a number that was returned before. */
const kpti_code_location *kpti_code_location_at(uint32_t number);
/* All numbers returned so far are below this. */
uint32_t kpti_code_location_end(void);
uint64_t kpti_code_location_bytes(void);

/* Finds or adds the location of a frame that a host reports. Returns 0 as kpti_code_location_intern
 * does. */
uint32_t kpti_code_location_reported(uint32_t kind, kpt_str name, kpt_str file, uint32_t line);
/* Describes a location. Looks a native location up in the loader's tables the first time. */
kpt_symbol kpti_code_location_symbol(uint32_t number);

/* Held around a fork, so that the table is consistent in the child. */
void kpti_code_locations_lock(void);
void kpti_code_locations_unlock(void);

#endif
