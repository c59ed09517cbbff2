#include "execution_trace/output/string_buffer.h"

#include <math.h>
#include <stdio.h>

int kpti_et_text_grow(kpti_et_text *t, size_t size)
{
    if (size < SIZE_MAX / 2 &&
        kpti_array_reserve(t->heap, &t->data, &t->capacity, t->used + size + 1, 1))
        return 1;
    t->failed = 1;
    return 0;
}

void kpti_et_text_free(kpti_et_text *t)
{
    kpti_heap_give(t->heap, t->data, t->capacity);
    t->data = NULL;
    t->used = t->capacity = 0;
}

/* snprintf and strtod both use the decimal point of the locale. */
static char *put_shortest(char *to, double value)
{
    enum { MIN_CALLS = 15, MAX = 17 }; /* digits always preserved, and always enough */
    char digits[KPTI_JSON_MAX_NUMBER + 16];
    int has_point = 0;
    for (int count = MIN_CALLS; count <= MAX; count++) {
        (void)snprintf(digits, sizeof digits, "%.*g", count, value);
        if (strtod(digits, NULL) == value) break;
    }
    for (const char *from = digits; *from; from++) {
        const int is_plain = (*from >= '0' && *from <= '9') || *from == '-' || *from == '+';
        if (is_plain || *from == 'e') {
            has_point |= *from == 'e';
            *to++ = *from;
        } else if (!has_point) { /* the decimal point of the locale, which may be several bytes */
            has_point = 1;
            *to++ = '.';
        }
    }
    return has_point ? to : KPTI_PUT(to, ".0"); /* mark it as a double even if it is integral */
}

char *kpti_et_put_double(char *to, double value)
{
    if (isnan(value)) return KPTI_PUT(to, "\"nan\"");
    if (isinf(value)) return value > 0 ? KPTI_PUT(to, "\"inf\"") : KPTI_PUT(to, "\"-inf\"");
    return put_shortest(to, value);
}
