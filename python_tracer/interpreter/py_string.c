#include "python_tracer/interpreter/py_string.h"

#include "python_tracer/interpreter/cpython.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest output for one character: \udc80. */
enum { MAX_BYTES = 6 };

static size_t put_character(char *out, Py_UCS4 c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c >= 0xD800 && c <= 0xDFFF) {
        static const char digits[] = "0123456789abcdef";
        const char escaped[MAX_BYTES] = {
            '\\',          'u', digits[c >> 12 & 15], digits[c >> 8 & 15], digits[c >> 4 & 15],
            digits[c & 15]};
        memcpy(out, escaped, MAX_BYTES);
        return MAX_BYTES;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

kpt_str kpti_py_string_of(PyObject *text, char **hold)
{
    kpt_str out = {"?", 1};
    size_t size = 0;
    Py_ssize_t length;
    *hold = NULL;
    if (!text || !PyUnicode_Check(text) || !kpti_unicode_is_ready(text)) return out;
    length = PyUnicode_GET_LENGTH(text);
    if (PyUnicode_IS_ASCII(text)) {
        out.data = PyUnicode_DATA(text);
        out.size = (uint64_t)length;
        return out;
    }
    *hold = malloc((size_t)length * MAX_BYTES);
    if (!*hold) return out;
    for (Py_ssize_t i = 0; i < length; i++)
        size += put_character(*hold + size,
                              PyUnicode_READ(PyUnicode_KIND(text), PyUnicode_DATA(text), i));
    out.data = *hold;
    out.size = size;
    return out;
}

size_t kpti_py_string_fitting(kpt_str from, size_t capacity)
{
    size_t length = from.size < capacity ? (size_t)from.size : capacity;
    while (length > 0 && length < from.size && ((unsigned char)from.data[length] & 0xC0) == 0x80)
        length--;
    return length;
}

void kpti_py_string_copy(PyObject *text, char *out, size_t size)
{
    char *hold;
    const kpt_str from = kpti_py_string_of(text, &hold);
    const size_t length = kpti_py_string_fitting(from, size - 1);
    memcpy(out, from.data, length);
    out[length] = 0;
    free(hold);
}
