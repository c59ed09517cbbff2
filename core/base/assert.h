/* assert.h: kpti_assert(CONDITION), for what the code promises to itself: preconditions of internal functions and
 * invariants of structs. Data from the other side of the ABI, or from a file, is checked by code instead.
 *
 * With KPTI_ASSERTIONS (debug, sanitizer and fuzzer builds) a false condition writes its place to stderr and aborts.
 * Otherwise the condition is compiled but not evaluated. A condition has no side effects, calls no Python and takes
 * no lock. Async-signal-safe. */
#ifndef KPTI_CORE_BASE_ASSERT_H
#define KPTI_CORE_BASE_ASSERT_H

#ifdef KPTI_ASSERTIONS

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void kpti_assert_write(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* the process ends in any case */
}

static __attribute__((noreturn, noinline, cold, unused)) void
kpti_assert_failed(const char *file, unsigned line, const char *function, const char *condition)
{
    char digits[16];
    char *at = digits + sizeof digits - 1;
    *at = 0;
    for (; line; line /= 10)
        *--at = (char)('0' + line % 10);
    kpti_assert_write(file);
    kpti_assert_write(":");
    kpti_assert_write(at);
    kpti_assert_write(": ");
    kpti_assert_write(function);
    kpti_assert_write(": assertion failed: ");
    kpti_assert_write(condition);
    kpti_assert_write("\n");
    abort();
}

#define kpti_assert(condition)                                          \
    (__builtin_expect(!(condition), 0)                                  \
         ? kpti_assert_failed(__FILE__, __LINE__, __func__, #condition) \
         : (void)0)

#else

#define kpti_assert(condition) ((void)(0 && (condition)))

#endif

/* Whether VALUE is 0 or a power of two, as the capacity of every hash table is. */
static inline int kpti_is_power_or_zero(unsigned long long value)
{
    return (value & (value - 1)) == 0;
}

#endif
