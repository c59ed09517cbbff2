#include "plugin/objects/struct_size.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

kpt_status kpti_size_check(const void *target, uint32_t v1_size)
{
    if (!target) return KPT_E_INVALID;
    return kpti_size_of(target) < v1_size ? KPT_E_SIZE : KPT_OK;
}

kpt_status kpti_size_read(void *local, uint32_t size, const void *source, uint32_t v1_size)
{
    kpt_status status = kpti_size_check(source, v1_size);
    uint32_t filled;
    memset(local, 0, size);
    if (status != KPT_OK) return status;
    filled = smaller(kpti_size_of(source), size);
    memcpy(local, source, filled);
    memcpy(local, &filled, sizeof filled);
    return KPT_OK;
}

void kpti_size_write(void *target, const void *local, uint32_t size)
{
    uint32_t filled = smaller(kpti_size_of(target), size);
    memcpy(target, local, filled);
    memcpy(target, &filled, sizeof filled);
}

kpt_status kpti_size_check_array(const void *array, uint64_t count, uint64_t stride,
                                 uint32_t v1_size)
{
    if (count == 0) return KPT_OK;
    if (!array) return KPT_E_INVALID;
    return stride < v1_size ? KPT_E_SIZE : KPT_OK;
}
