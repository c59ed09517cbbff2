#include "writers/gpu/gpu_codec.h"

#include <stddef.h>
#include <string.h>

#include "writers/encode/proto.h"

/* A field of an entry. */
typedef struct field {
    uint16_t offset;
    uint8_t bytes; /* 2, 4 or 8 */
    /* packed as the difference to the previous event; other fields are packed as they are */
    uint8_t is_delta;
} field;

#define EVENT(name, is_delta)                                                        \
    {                                                                                \
        (uint16_t)(offsetof(kpti_gpu_entry, event) + offsetof(kpt_gpu_event, name)), \
            sizeof((kpt_gpu_event *)0)->name, is_delta                               \
    }
#define OWN(name)                                                                       \
    {                                                                                   \
        (uint16_t) offsetof(kpti_gpu_entry, name), sizeof((kpti_gpu_entry *)0)->name, 0 \
    }

/* The order is part of the format: new fields are added at the end. The fields that differ most often are
 * first, so that the bit mask is short. The end is packed as the duration. */
static const field fields[] = {
    EVENT(start_ns, 1),
    EVENT(end_ns, 1),
    EVENT(correlation, 1),
    EVENT(kind, 0),
    OWN(text),
    OWN(stack),
    EVENT(cbid, 0),
    EVENT(device, 0),
    EVENT(context, 0),
    EVENT(stream, 0),
    EVENT(os_tid, 0),
    EVENT(registers, 0),
    EVENT(grid[0], 0),
    EVENT(block[0], 0),
    EVENT(bytes, 0),
    EVENT(external, 0),
    EVENT(flags, 0),
    EVENT(grid[1], 0),
    EVENT(grid[2], 0),
    EVENT(block[1], 0),
    EVENT(block[2], 0),
    EVENT(shared_static_bytes, 0),
    EVENT(shared_dynamic_bytes, 0),
    EVENT(local_bytes, 0),
    EVENT(copy_kind, 0),
    EVENT(source_kind, 0),
    EVENT(target_kind, 0),
    EVENT(sync_kind, 0),
    EVENT(event, 0),
    EVENT(graph, 0),
    EVENT(value, 0),
};
enum { FIELDS = sizeof fields / sizeof fields[0], END_FIELD = 1 };
_Static_assert(FIELDS *KPTI_MAX_VARINT + KPTI_MAX_VARINT <= KPTI_GPU_MAX_BYTES, "an event fits");

const kpti_gpu_entry kpti_gpu_nothing;

static uint64_t get(const kpti_gpu_entry *e, const field *f)
{
    const char *at = (const char *)e + f->offset;
    uint64_t wide;
    uint32_t number;
    uint16_t narrow;
    if (f->bytes == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    if (f->bytes == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&number, at, sizeof number);
    return number;
}

static void set(kpti_gpu_entry *e, const field *f, uint64_t value)
{
    char *at = (char *)e + f->offset;
    const uint32_t number = (uint32_t)value;
    const uint16_t narrow = (uint16_t)value;
    if (f->bytes == sizeof value)
        memcpy(at, &value, sizeof value);
    else if (f->bytes == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &number, sizeof number);
}

/* Returns the value that a field is compared with: for the end, the event's own start; else the previous
 * event's field. */
static uint64_t base_of(const kpti_gpu_entry *now, const kpti_gpu_entry *before, int i)
{
    return i == END_FIELD ? (uint64_t)now->event.start_ns : get(before, &fields[i]);
}

/* Differences may be negative. Their sign is moved to the last bit. */
static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t packed)
{
    return packed >> 1 ^ (packed & 1 ? UINT64_MAX : 0);
}

unsigned char *kpti_gpu_pack(unsigned char *out, const kpti_gpu_entry *e,
                             const kpti_gpu_entry *before)
{
    uint64_t which = 0;
    char *at;
    for (int i = 0; i < FIELDS; i++)
        if (get(e, &fields[i]) != base_of(e, before, i)) which |= UINT64_C(1) << i;
    at = kpti_put_varint((char *)out, which);
    for (int i = 0; i < FIELDS; i++) {
        const uint64_t value = get(e, &fields[i]);
        if (!(which >> i & 1)) continue;
        /* 32-bit values are packed plus 1, since the most frequent large value is UINT32_MAX (none). */
        at = kpti_put_varint(at, fields[i].is_delta ? zigzag(value - base_of(e, before, i))
                                 : fields[i].bytes == sizeof(uint32_t) ? (uint32_t)value + 1
                                                                       : value);
    }
    return (unsigned char *)at;
}

static const unsigned char *take_varint(const unsigned char *at, const unsigned char *end,
                                        uint64_t *value)
{
    *value = 0;
    for (uint32_t shift = 0; at < end && shift < 64; shift += 7) {
        *value |= (uint64_t)(*at & 0x7F) << shift;
        if (!(*at++ & 0x80)) return at;
    }
    return NULL;
}

const unsigned char *kpti_gpu_unpack(const unsigned char *at, const unsigned char *end,
                                     kpti_gpu_entry *e)
{
    uint64_t which;
    uint64_t value;
    at = take_varint(at, end, &which);
    if (!at || which >> FIELDS) return NULL;
    for (int i = 0; i < FIELDS; i++) {
        const field *f = &fields[i];
        const int is_there = (int)(which >> i & 1);
        value = 0;
        if (is_there) at = take_varint(at, end, &value);
        if (!at) return NULL;
        if (f->is_delta)
            set(e, f, base_of(e, e, i) + unzigzag(value));
        else if (is_there)
            set(e, f, f->bytes == sizeof(uint32_t) ? value - 1 : value);
    }
    return at;
}
