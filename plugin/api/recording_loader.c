/* recording_loader.c: the extension KPT_EXT_LOADER, which rebuilds recordings from chunks. The resulting tracer
 * is an object like any other, stopped from the beginning. */
#include "plugin/api/recording_loader.h"

#include "core/recording/serialized/loaded_tracer.h"
#include "plugin/api/tracer_api.h"
#include "plugin/objects/object_factory.h"
#include "plugin/objects/struct_size.h"

static kpt_status take_args(kpt_load_args *local, const kpt_load_args *args, kpti_error *error)
{
    kpt_status status = kpti_size_read(local, sizeof *local, args, KPT_LOAD_ARGS_V1_SIZE);
    if (status != KPT_OK)
        return kpti_fail(error, status,
                         "load: args is NULL, or its struct_size below the one in ABI 1.1");
    if (local->flags) return kpti_fail(error, KPT_E_UNSUPPORTED, "load: args has an unknown flag");
    if (!local->next) return kpti_fail(error, KPT_E_INVALID, "load: args.next is NULL");
    return KPT_OK;
}

/* Makes a handle for the loaded tracer. */
static kpt_status adopt(kpti_host_binding *binding, void *self, kpti_made *made, kpti_error *error)
{
    const kpti_object_class *p = &kpti_tracer_class;
    kpti_object *object = kpti_alloc(&binding->env, sizeof *object);
    kpt_status status = KPT_E_MEMORY;
    if (object) {
        *object = (kpti_object){.binding = binding,
                                .impl = &kpti_loaded_tracer,
                                .self = self,
                                .state = KPT_STATE_STOPPED};
        status = kpti_handle_new(p->kind, object, "", &made->self);
    }
    if (status == KPT_OK) {
        made->ops = p->ops;
        return KPT_OK;
    }
    kpti_free(&binding->env, object, sizeof *object);
    return kpti_fail(error, status, "load: no memory, or too many tracers in this process");
}

static kpt_status load_into(kpti_host_binding *binding, const kpt_load_args *args, kpti_made *made,
                            kpti_error *error)
{
    kpt_load_args local;
    void *self = NULL;
    kpt_status status = take_args(&local, args, error);
    if (status == KPT_OK) status = kpti_loaded_make(&binding->env, &local, &self, error);
    if (status != KPT_OK) return status;
    status = adopt(binding, self, made, error);
    if (status != KPT_OK) kpti_loaded_tracer.destroy(self);
    return status;
}

static kpt_status load(kpt_handle plugin, const kpt_load_args *args, kpt_tracer *out)
{
    kpti_host_binding *binding = kpti_handle_pin(plugin, &kpti_host_binding_kind);
    kpti_made made = {0};
    kpti_error error = {""};
    kpt_status status = kpti_size_check(out, KPT_TRACER_V1_SIZE);
    if (!binding) {
        if (status == KPT_OK) kpti_size_write(out, &made, sizeof made); /* zeros */
        return KPT_E_HANDLE;
    }
    if (status == KPT_OK) {
        status = load_into(binding, args, &made, &error);
        kpti_size_write(out, &made, sizeof made);
    } else {
        (void)kpti_fail(&error, status, "load: out is NULL, or its struct_size too small");
    }
    if (status == KPT_OK) return KPT_OK; /* the tracer keeps the pin until it is destroyed */
    (void)kpti_handle_fail(plugin, status, &error);
    kpti_handle_unpin(plugin);
    return status;
}

const kpt_loader kpti_loader_table = {sizeof kpti_loader_table, 0, load};
