/* sample_layout.c: the size rule of kpt_base.h. It owns nothing; the two functions that reach past
 * the end are those of the wrong variants. */
#include "tests/plugins/sample.h"

static uint32_t size_of(const void *theirs)
{
    uint32_t size;
    memcpy(&size, theirs, sizeof size);
    return size;
}

/* Returns how many bytes of the struct both sides know. */
static uint32_t common(const void *theirs, const sample_layout *layout)
{
    uint32_t size = size_of(theirs);
    return size < layout->size ? size : layout->size;
}

enum { PAST_BYTES = 8 };

/* Both functions leave the bytes that they touch unchanged, since these belong to others; only an
 * inaccessible page detects the access. They are exempt from the sanitizer, which would also end rules that
 * are not about this. */
__attribute__((no_sanitize("address"))) static void read_past(const void *theirs, uint32_t end)
{
    const volatile char *bytes = theirs;
    for (uint32_t i = 0; i < PAST_BYTES; i++)
        (void)bytes[end + i];
}

__attribute__((no_sanitize("address"))) static void write_past(void *theirs, uint32_t end)
{
    volatile char *bytes = theirs;
    for (uint32_t i = 0; i < PAST_BYTES; i++)
        bytes[end + i] = bytes[end + i];
}

kpt_status sample_read(void *local, const sample_layout *layout, const void *theirs)
{
    uint32_t filled;
    memset(local, 0, layout->size);
    if (!theirs) return KPT_E_INVALID;
    filled = common(theirs, layout);
    if (filled < layout->v1_size) {
        if (!wrong(layout->below)) return KPT_E_SIZE;
        filled = layout->v1_size;
    }
    if (wrong(layout->larger) && size_of(theirs) > layout->size) return KPT_E_SIZE;
    if (wrong(layout->past)) read_past(theirs, filled);
    memcpy(local, theirs, filled);
    memcpy(local, &filled, sizeof filled);
    return KPT_OK;
}

kpt_status sample_check(void *theirs, const sample_layout *layout)
{
    if (!theirs) return KPT_E_INVALID;
    if (size_of(theirs) >= layout->v1_size) return KPT_OK;
    if (wrong(layout->below)) ((char *)theirs)[sizeof(uint32_t)] ^= 1;
    return KPT_E_SIZE;
}

void sample_write(void *theirs, const sample_layout *layout, const void *local)
{
    uint32_t filled = common(theirs, layout);
    memcpy(theirs, local, filled);
    memcpy(theirs, &filled, sizeof filled);
    if (wrong(layout->past)) write_past(theirs, filled);
}
