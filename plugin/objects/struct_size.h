/* struct_size.h: the size rule of kpt_base.h as pure functions. They know no struct, touch nothing but
 * their arguments, and never look past the other side's struct_size. */
#ifndef KPTI_PLUGIN_OBJECTS_STRUCT_SIZE_H
#define KPTI_PLUGIN_OBJECTS_STRUCT_SIZE_H

#include "abi/kpt_base.h"

/* Copies what the other side's struct at SOURCE has of the SIZE bytes that we know into LOCAL,
 * zeroing the rest. Afterwards LOCAL is whole, and its struct_size tells how much was filled.
 * KPT_E_INVALID: SOURCE is NULL. KPT_E_SIZE: it is smaller than V1_SIZE. LOCAL is then zero. */
kpt_status kpti_size_read(void *local, uint32_t size, const void *source, uint32_t v1_size);

/* What the other side's struct, which may lie anywhere, says of itself: read by copy, never by cast. */
static inline uint32_t kpti_size_of(const void *peer)
{
    uint32_t size;
    memcpy(&size, peer, sizeof size);
    return size;
}

/* Whether the struct at SOURCE, or NULL, has all of the SIZE bytes that we know, and lies where they can be read in
 * place. */
static inline int kpti_size_is_whole(const void *source, uint32_t size)
{
    return source && (uintptr_t)source % sizeof(uint64_t) == 0 && kpti_size_of(source) >= size;
}

/* Whether the struct at TARGET, which we are to fill, can be: before anything is done for it. */
kpt_status kpti_size_check(const void *target, uint32_t v1_size);

/* Copies our LOCAL of SIZE bytes to TARGET, no further than TARGET's own struct_size, and writes
 * there how much is filled. TARGET was checked. */
void kpti_size_write(void *target, const void *local, uint32_t size);

/* Whether an array that came over can be read: no elements, or a pointer and a stride that holds
 * what V1 had of an element. */
kpt_status kpti_size_check_array(const void *array, uint64_t count, uint64_t stride,
                                 uint32_t v1_size);

#endif
