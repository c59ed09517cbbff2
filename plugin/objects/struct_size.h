/* struct_size.h: the size rule of kpt_base.h as pure functions. They depend on no particular struct, access
 * only their arguments, and never read past the other side's struct_size. */
#ifndef KPTI_PLUGIN_OBJECTS_STRUCT_SIZE_H
#define KPTI_PLUGIN_OBJECTS_STRUCT_SIZE_H

#include "abi/kpt_base.h"

/* Copies the struct at SOURCE, which belongs to the other side, into LOCAL, at most SIZE bytes, and zeroes the
 * rest of LOCAL. LOCAL's struct_size receives the number of bytes that were filled. Returns KPT_E_INVALID if
 * SOURCE is NULL, or KPT_E_SIZE if it is smaller than V1_SIZE; LOCAL is then zero. */
kpt_status kpti_size_read(void *local, uint32_t size, const void *source, uint32_t v1_size);

/* Returns the struct_size of the other side's struct. It is read by memcpy, since the struct may be unaligned. */
static inline uint32_t kpti_size_of(const void *peer)
{
    uint32_t size;
    memcpy(&size, peer, sizeof size);
    return size;
}

/* Returns 1 if the struct at SOURCE has all of the SIZE bytes of this version and is aligned, so that it can be
 * read in place. Returns 0 if SOURCE is NULL. */
static inline int kpti_size_is_whole(const void *source, uint32_t size)
{
    return source && (uintptr_t)source % sizeof(uint64_t) == 0 && kpti_size_of(source) >= size;
}

/* Checks that the struct at TARGET can be filled. Call it before any other work for TARGET. Returns
 * KPT_E_INVALID if TARGET is NULL, or KPT_E_SIZE if it is smaller than V1_SIZE. */
kpt_status kpti_size_check(const void *target, uint32_t v1_size);

/* Copies SIZE bytes of LOCAL to TARGET, at most TARGET's own struct_size, and stores the number of bytes copied
 * in TARGET's struct_size. TARGET was checked before. */
void kpti_size_write(void *target, const void *local, uint32_t size);

/* Checks that an array from the other side can be read: it is empty, or it has a pointer and a stride of at
 * least V1_SIZE. */
kpt_status kpti_size_check_array(const void *array, uint64_t count, uint64_t stride,
                                 uint32_t v1_size);

#endif
