#include "plugin/base/verbose_log.h"

#include <stdatomic.h>

static atomic_int verbose;

void kpti_say_configure(void)
{
    const char *value = getenv("KPYTRACE_VERBOSE");
    atomic_store(&verbose, value && *value && strcmp(value, "0") != 0);
}

void kpti_say(const kpt_host *host, uint32_t level, const char *format, ...)
{
    char text[1024];
    va_list args;
    kpt_str message = {text, 0};
    int to_host = host && host->log;
    int to_stderr = atomic_load(&verbose);
    int length;
    if (!to_host && !to_stderr) return;
    va_start(args, format);
    length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0) return;
    message.size = strlen(text);
    if (to_stderr) (void)fprintf(stderr, "kpytrace: %s\n", text);
    if (to_host) host->log(host->ctx, level, message);
}
