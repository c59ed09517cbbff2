/* proto.h: the part of the wire format of protocol buffers that is used here. Each function writes and returns
 * the end of its output. Nothing allocates or fails; the caller provides the space. */
#ifndef KPTI_WRITERS_ENCODE_PROTO_H
#define KPTI_WRITERS_ENCODE_PROTO_H

#include <string.h>

#include "abi/kpt_base.h"
#include "core/base/utf8.h"
#include "core/base/varint.h"

enum { KPTI_PROTO_MAX_TAG = 5 };
/* Size of a message's length field if the length is not known before the end of the message. */
enum { KPTI_PROTO_LENGTH_BYTES = 4 };

enum { KPTI_WIRE_VARINT = 0, KPTI_WIRE_FIXED64 = 1, KPTI_WIRE_BYTES = 2 };

static inline char *kpti_proto_tag(char *at, uint32_t field, uint32_t wire)
{
    return kpti_put_varint(at, field << 3 | wire);
}

static inline char *kpti_proto_number(char *at, uint32_t field, uint64_t value)
{
    return kpti_put_varint(kpti_proto_tag(at, field, KPTI_WIRE_VARINT), value);
}

/* Little endian, on any machine. */
static inline char *kpti_proto_fixed64(char *at, uint32_t field, uint64_t value)
{
    at = kpti_proto_tag(at, field, KPTI_WIRE_FIXED64);
    for (int i = 0; i < 8; i++)
        *at++ = (char)(value >> 8 * i);
    return at;
}

static inline char *kpti_proto_double(char *at, uint32_t field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return kpti_proto_fixed64(at, field, bits);
}

/* Begins a message field. The result is passed to close, with the end of the message. */
static inline char *kpti_proto_open(char *at, uint32_t field)
{
    return kpti_proto_tag(at, field, KPTI_WIRE_BYTES) + KPTI_PROTO_LENGTH_BYTES;
}

static inline char *kpti_proto_close(char *content, char *end)
{
    uint32_t size = (uint32_t)(end - content);
    char *at = content - KPTI_PROTO_LENGTH_BYTES;
    for (int i = 0; i < KPTI_PROTO_LENGTH_BYTES - 1; i++, size >>= 7)
        *at++ = (char)(size | 0x80);
    *at = (char)(size & 0x7F);
    return end;
}

/* Writes a text of at most MAX bytes, made valid UTF-8, which may triple its size. */
static inline char *kpti_proto_text(char *at, uint32_t field, kpt_str text, size_t max)
{
    char *content = kpti_proto_open(at, field);
    size_t size = text.size < max ? (size_t)text.size : max;
    return kpti_proto_close(content, kpti_utf8_copy(content, text.data, text.data ? size : 0));
}

#endif
