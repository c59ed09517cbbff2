/* verbose_log.h: the verbose log. With KPYTRACE_VERBOSE set (and not "0") every load step is told on
 * stderr; without it nothing is ever printed. Steps go to the host's log as well, if it has one. */
#ifndef KPTI_PLUGIN_BASE_VERBOSE_LOG_H
#define KPTI_PLUGIN_BASE_VERBOSE_LOG_H

#include "abi/impl/kpti_impl.h"

/* Reads the variable anew: at each entry, so that a test or a user can switch it between loads. */
void kpti_say_configure(void);

/* Tells one step. HOST may be NULL, when there is none yet. No newline at the end. */
__attribute__((format(printf, 3, 4))) void kpti_say(const kpt_host *host, uint32_t level,
                                                    const char *format, ...);

#endif
