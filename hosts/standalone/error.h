/* error.h: the error of a failed call of the host. */
#ifndef KPTI_STANDALONE_ERROR_H
#define KPTI_STANDALONE_ERROR_H

#include <stdarg.h>
#include <stdio.h>

#include "abi/kpt.h"

typedef struct kpti_session_error {
    kpt_status status;
    int os_error;   /* an errno if a file could not be read or written, otherwise 0 */
    char text[512]; /* for users: what failed, and the plugin's own text */
} kpti_session_error;

/* Writes the text and returns STATUS. */
__attribute__((format(printf, 3, 4))) static inline kpt_status
kpti_session_fail(kpti_session_error *error, kpt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    error->status = status;
    error->os_error = 0;
    return status;
}

/* The same for a file that could not be read or written. */
static inline kpt_status kpti_session_fail_io(kpti_session_error *error, int os_error,
                                              const char *path)
{
    (void)kpti_session_fail(error, KPT_E_IO, "%.180s: %s", path, strerror(os_error));
    error->os_error = os_error;
    return KPT_E_IO;
}

/* The same with WHAT, followed by the plugin's text. */
static inline kpt_status kpti_session_fail_of(kpti_session_error *error, kpt_status status,
                                              const char *what, kpt_last_error_fn last_error,
                                              kpt_handle self)
{
    char text[384] = "";
    if (last_error) (void)last_error(self, text, sizeof text, NULL);
    return kpti_session_fail(error, status, "%s: %s", what,
                             text[0] ? text : kpt_status_name(status));
}

#endif
