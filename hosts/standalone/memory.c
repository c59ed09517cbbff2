#include "memory.h"

#include <stdlib.h>

struct kpti_recording {
    kpti_door door;
    kpt_memory_tracer tracer;
    char noop_reason[256];
};

static kpt_status make_inside(kpti_recording *r, const char *plugin, const kpt_memory_args *args,
                              kpti_session_error *error)
{
    kpt_status status = kpti_door_open(&r->door, plugin, error);
    if (status != KPT_OK) return status;
    status = kpti_door_make_memory(&r->door, args, &r->tracer, error);
    if (status != KPT_OK) {
        kpti_door_close(&r->door);
        return status;
    }
    if (!(r->tracer.flags & KPT_OBJECT_NOOP)) return KPT_OK;
    (void)r->tracer.ops->last_error(r->tracer.self, r->noop_reason, sizeof r->noop_reason, NULL);
    if (!r->noop_reason[0])
        (void)snprintf(r->noop_reason, sizeof r->noop_reason, "the plugin does not say why");
    return KPT_OK;
}

kpt_status kpti_recording_make(const char *plugin, const kpt_memory_args *args,
                               kpti_recording **out, kpti_session_error *error)
{
    kpti_recording *r = calloc(1, sizeof *r);
    kpt_status status;
    *out = NULL;
    if (!r) return kpti_session_fail(error, KPT_E_MEMORY, "no memory for a recording");
    status = make_inside(r, plugin, args, error);
    if (status == KPT_OK)
        *out = r;
    else
        free(r);
    return status;
}

const char *kpti_recording_noop_reason(const kpti_recording *recording)
{
    return recording->noop_reason[0] ? recording->noop_reason : NULL;
}

/* STATUS, with the plugin's words where it is none of KPT_OK. */
static kpt_status tell(const kpti_recording *r, kpt_status status, const char *what,
                       kpti_session_error *error)
{
    if (status == KPT_OK) return status;
    return kpti_session_fail_of(error, status, what, r->tracer.ops->last_error, r->tracer.self);
}

kpt_status kpti_recording_start(kpti_recording *r, kpti_session_error *error)
{
    return tell(r, r->tracer.ops->start(r->tracer.self), "memory can't be recorded", error);
}

kpt_status kpti_recording_stop(kpti_recording *r, kpti_session_error *error)
{
    return tell(r, r->tracer.ops->stop(r->tracer.self), "recording can't be stopped", error);
}

kpt_status kpti_recording_export(kpti_recording *r, const char *path, kpti_session_error *error)
{
    return tell(r, r->tracer.ops->export_memory_history(r->tracer.self, kpt_str_of(path)),
                "memory can't be exported", error);
}

const kpt_memory_tracer *kpti_recording_tracer(const kpti_recording *r)
{
    return &r->tracer;
}

kpt_status kpti_recording_close(kpti_recording *r, kpti_session_error *error)
{
    const kpt_status status = r->tracer.ops->destroy(r->tracer.self);
    if (status == KPT_E_HANDLE) return KPT_OK; /* again is no change */
    return tell(r, status, "the recording can't be freed", error);
}

void kpti_recording_free(kpti_recording *r)
{
    if (!r) return;
    (void)r->tracer.ops->destroy(r->tracer.self);
    kpti_door_close(&r->door);
    free(r);
}
