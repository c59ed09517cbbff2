/* batch_records.h: the records of a batch: as long as the plugin's, which may be newer than this. */
#ifndef KPTI_CORE_BASE_BATCH_RECORDS_H
#define KPTI_CORE_BASE_BATCH_RECORDS_H

#include <string.h>

#include "abi/kpt_activity.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int kpti_records_ok(const void *records, uint32_t count, uint32_t stride,
                                  uint32_t v1_size)
{
    return !count || (records && stride >= v1_size && stride % sizeof(uint64_t) == 0);
}

/* Whether the records of a batch are as long as this ABI's, or longer. */
static inline int kpti_records_can_read(const kpt_batch *b)
{
    return b && b->struct_size >= KPT_BATCH_V1_SIZE &&
           kpti_records_ok(b->activities, b->activity_count, b->activity_stride,
                           KPT_ACTIVITY_V1_SIZE) &&
           kpti_records_ok(b->names, b->name_count, b->name_stride, KPT_NAME_V1_SIZE) &&
           kpti_records_ok(b->threads, b->thread_count, b->thread_stride, KPT_THREAD_V1_SIZE);
}

/* Record I of those. */
static inline const void *kpti_record(const void *records, uint32_t stride, uint32_t i)
{
    return (const char *)records + (size_t)stride * i;
}

/* Returns the name of a function for display. */
static inline kpt_str kpti_shown_name(const kpt_name *name)
{
    return name->display.size ? name->display : name->function;
}

/* Returns the name of a function with its classes, or the plain one if the interpreter has no other: also if a program has
 * renamed the code object, whose qualified name then is that of the earlier name. */
static inline kpt_str kpti_function_name(const kpt_name *name)
{
    const kpt_str function = name->function;
    const kpt_str qualname = name->qualname;
    if (!function.size || qualname.size <= function.size ||
        memcmp(qualname.data + (qualname.size - function.size), function.data,
               (size_t)function.size) != 0)
        return function;
    return qualname;
}

#ifdef __cplusplus
}
#endif
#endif
