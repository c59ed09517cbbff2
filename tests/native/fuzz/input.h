/* input.h: a fuzzer's bytes, taken one number after the other; behind the end there are zeroes. */
#ifndef INPUT_H
#define INPUT_H

#include <stddef.h>
#include <stdint.h>

typedef struct input {
    const uint8_t *at;
    const uint8_t *end;
} input;

static inline uint64_t take(input *in, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && in->at < in->end; i++)
        value |= (uint64_t)*in->at++ << (8 * i);
    return value;
}

#endif
