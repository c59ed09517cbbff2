/* pickle.h: writes Python's pickle format, protocol 4, in the subset that viewers of memory snapshots read: few
 * opcodes, no FRAME, no imports. A memoized value can be referred to by its number. */
#ifndef KPTI_WRITERS_ENCODE_PICKLE_H
#define KPTI_WRITERS_ENCODE_PICKLE_H

#include <string.h>

#include "writers/io/output_file.h"

typedef struct kpti_pickle {
    kpti_out_file *out;
    uint32_t memos; /* numbers assigned so far */
} kpti_pickle;

enum { KPTI_PICKLE_MAX_APPENDS = 1000 }; /* at once */

static inline void kpti_pickle_byte(kpti_pickle *p, char byte)
{
    char *at = kpti_out_reserve(p->out, 1);
    *at++ = byte;
    kpti_out_wrote(p->out, at);
}

static inline void kpti_pickle_begin(kpti_pickle *p)
{
    kpti_pickle_byte(p, '\x80');
    kpti_pickle_byte(p, 4);
}
static inline void kpti_pickle_end(kpti_pickle *p)
{
    kpti_pickle_byte(p, '.');
}

/* MARK, and the opcodes that close it. */
static inline void kpti_pickle_mark(kpti_pickle *p)
{
    kpti_pickle_byte(p, '(');
}
static inline void kpti_pickle_dict(kpti_pickle *p)
{
    kpti_pickle_byte(p, 'd');
}
static inline void kpti_pickle_empty_list(kpti_pickle *p)
{
    kpti_pickle_byte(p, ']');
}
static inline void kpti_pickle_appends(kpti_pickle *p)
{
    kpti_pickle_byte(p, 'e');
}
static inline void kpti_pickle_tuple2(kpti_pickle *p)
{
    kpti_pickle_byte(p, '\x86');
}
static inline void kpti_pickle_bool(kpti_pickle *p, int value)
{
    kpti_pickle_byte(p, value ? '\x88' : '\x89');
}
static inline void kpti_pickle_none(kpti_pickle *p)
{
    kpti_pickle_byte(p, 'N');
}

/* Assigns a number to the value that was just written. */
static inline uint32_t kpti_pickle_memoize(kpti_pickle *p)
{
    kpti_pickle_byte(p, '\x94');
    return p->memos++;
}

/* Writes CODE and then SIZE bytes of VALUE, least significant byte first. */
static inline void kpti_pickle_number(kpti_pickle *p, char code, uint64_t value, int size)
{
    char *at = kpti_out_reserve(p->out, 16);
    *at++ = code;
    for (int i = 0; i < size; i++, value >>= 8)
        *at++ = (char)value;
    kpti_out_wrote(p->out, at);
}

static inline void kpti_pickle_get(kpti_pickle *p, uint32_t memo)
{
    if (memo < 256)
        kpti_pickle_number(p, 'h', memo, 1);
    else
        kpti_pickle_number(p, 'j', memo, 4);
}

static inline void kpti_pickle_int(kpti_pickle *p, uint64_t value)
{
    char *at;
    int size = 1;
    if (value < 256) {
        kpti_pickle_number(p, 'K', value, 1);
    } else if (value < 65536) {
        kpti_pickle_number(p, 'M', value, 2);
    } else if (value <= INT32_MAX) {
        kpti_pickle_number(p, 'J', value, 4);
    } else { /* LONG1: one byte more if the number's upper bit would be read as a sign */
        while (size < 8 && value >> (8 * size - 1))
            size++;
        if (size == 8 && value >> 63) size = 9;
        at = kpti_out_reserve(p->out, 16);
        *at++ = '\x8a';
        *at++ = (char)size;
        for (int i = 0; i < size; i++, value >>= 8)
            *at++ = (char)value;
        kpti_out_wrote(p->out, at);
    }
}

static inline void kpti_pickle_text(kpti_pickle *p, kpt_str text)
{
    if (text.size < 256)
        kpti_pickle_number(p, '\x8c', text.size, 1);
    else
        kpti_pickle_number(p, 'X', text.size, 4);
    kpti_out_put(p->out, text.data, text.size);
}

#endif
