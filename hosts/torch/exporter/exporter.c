#include "hosts/torch/exporter/exporter.h"

#include <stdio.h>

#include "hosts/torch/exporter/kernel_stacks.h"

static kpt_status fail_of_file(kpti_export_result *result, const kpti_splice_error *error)
{
    result->os_error = error->os_error;
    result->of_target = error->of_target;
    (void)snprintf(result->text, sizeof result->text, "%s", error->text);
    return KPT_E_IO;
}

static void fail_of_tracer(const kpti_torch_recording *recording, kpt_status status,
                           kpti_export_result *result)
{
    char text[256] = "";
    (void)recording->tracer.ops->last_error(recording->tracer.self, text, sizeof text, NULL);
    (void)snprintf(result->text, sizeof result->text, "the recording can't be read: %s",
                   text[0] ? text : kpt_status_name(status));
}

static int has_calls(const kpti_torch_recording *recording, uint32_t flags)
{
    return recording && kpti_torch_has(recording, flags) != KPTI_TORCH_HANDED_ALL;
}

static kpt_status put_calls(const kpti_torch_recording *recording, uint32_t flags,
                            kpti_chrome_events *events, kpti_export_result *result)
{
    kpt_status status;
    if (!has_calls(recording, flags)) return KPT_OK;
    status = kpti_torch_calls_write(recording, flags, events, &result->calls);
    if (status != KPT_OK && status != KPT_E_IO) fail_of_tracer(recording, status, result);
    return status;
}

static kpt_status write_trace(kpti_splice *splice, const kpti_torch_recording *recording,
                              const char *target, uint32_t flags, const kpti_kernel_stacks *stacks,
                              kpti_export_result *result)
{
    const kpti_splice_stacks added = {&stacks->gpu, &stacks->texts};
    kpti_splice_error error;
    kpt_status status;
    if (kpti_splice_begin(splice, target, (flags & KPTI_EXPORT_GZIP) != 0,
                          stacks->found ? &added : NULL, &error) != 0)
        return fail_of_file(result, &error);
    status = put_calls(recording, flags, &splice->events, result);
    if (kpti_splice_close(splice, status == KPT_OK, &error) == 0) return status;
    return status == KPT_OK || status == KPT_E_IO ? fail_of_file(result, &error) : status;
}

kpt_status kpti_export_trace(const kpti_torch_recording *recording, const char *source,
                             const char *target, uint32_t flags, kpti_export_result *result)
{
    const int may_stay = /* as torch wrote it */
        !has_calls(recording, flags) && !(flags & KPTI_EXPORT_GZIP) && strcmp(source, target) == 0;
    const int wants_stacks = recording && flags & KPTI_EXPORT_STACKS;
    kpti_splice splice;
    kpti_splice_error error;
    kpti_kernel_stacks stacks;
    kpt_status status = KPT_OK;
    memset(result, 0, sizeof *result);
    memset(&stacks, 0, sizeof stacks);
    if (kpti_splice_open(&splice, source, &error) != 0)
        return may_stay ? KPT_OK : fail_of_file(result, &error);
    if (wants_stacks) kpti_kernel_stacks_find(&stacks, recording, &splice.file);
    if (may_stay && !stacks.found && !splice.file.head.text)
        kpti_splice_leave(&splice);
    else
        status = write_trace(&splice, recording, target, flags, &stacks, result);
    kpti_kernel_stacks_free(&stacks);
    return status;
}

kpt_status kpti_export_list(const kpti_torch_recording *recording, const char *target,
                            int64_t base_ns, uint32_t flags, kpti_export_result *result)
{
    kpti_out_file out;
    kpti_splice_error error = {0, 1, ""};
    kpti_chrome_events events = {.out = &out, .base_ns = base_ns};
    kpt_status status;
    memset(result, 0, sizeof *result);
    memset(&out, 0, sizeof out);
    error.os_error = kpti_out_open(&out, target);
    if (error.os_error) return fail_of_file(result, &error);
    kpti_out_put(&out, "[null", 5); /* each event begins with a comma */
    status = put_calls(recording, flags, &events, result);
    kpti_out_put(&out, "]\n", 2);
    error.os_error = kpti_out_close(&out, status == KPT_OK);
    if (!error.os_error) return status;
    return status == KPT_OK || status == KPT_E_IO ? fail_of_file(result, &error) : status;
}
