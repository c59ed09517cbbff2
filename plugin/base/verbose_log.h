/* verbose_log.h: the verbose log. If KPYTRACE_VERBOSE is set (and not "0"), every load step is written to
 * stderr; otherwise nothing is ever printed. Steps also go to the host's log, if the host has one. */
#ifndef KPTI_PLUGIN_BASE_VERBOSE_LOG_H
#define KPTI_PLUGIN_BASE_VERBOSE_LOG_H

#include "abi/impl/kpti_impl.h"

/* Reads the variable again. The entry calls it each time, so that a test or a user can switch the log between
 * loads. */
void kpti_say_configure(void);

/* Logs one step. HOST is NULL if there is no host yet. The text has no newline at its end. */
__attribute__((format(printf, 3, 4))) void kpti_say(const kpt_host *host, uint32_t level,
                                                    const char *format, ...);

#endif
