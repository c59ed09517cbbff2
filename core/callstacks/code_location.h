/* code_location.h: the table of places: a frame of a stack, once each. A place of Python's is a function and an
 * instruction, with its line and columns worked out at first sight, so that the code object may die.
 *
 * One table serves the process and only grows, as the functions' does. A place never changes once its
 * number is out, but for the function of a native one, which is looked up when somebody asks. */
#ifndef KPTI_CORE_CALLSTACKS_CODE_LOCATION_H
#define KPTI_CORE_CALLSTACKS_CODE_LOCATION_H

#include <stdatomic.h>

#include "abi/kpt_traceback.h"

typedef struct kpti_place {
    uint32_t chain; /* the pool's */
    uint32_t kind;  /* KPT_SYMBOL_* */
    uint64_t where; /* the instruction's offset in bytes; a native frame's address */
    _Atomic uint32_t function;
    uint32_t line;
    uint32_t end_line;
    uint32_t column;
    uint32_t end_column;
} kpti_place;

/* Finds or adds a place; chain is not looked at. 0 when there is no memory or no number left. */
uint32_t kpti_place_intern(const kpti_place *place);
/* The place of a number that was given. */
const kpti_place *kpti_place_at(uint32_t number);
/* Numbers that are out are below this. */
uint32_t kpti_place_end(void);
uint64_t kpti_place_bytes(void);

/* The place of a frame that a host tells. */
uint32_t kpti_place_told(uint32_t kind, kpt_str name, kpt_str file, uint32_t line);
/* What a place reads as. Looks a native one up in the loader's tables the first time. */
kpt_symbol kpti_place_symbol(uint32_t number);

/* Around a fork, so that the child finds the table whole. */
void kpti_places_lock(void);
void kpti_places_unlock(void);

#endif
