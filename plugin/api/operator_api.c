#include "plugin/api/operator_api.h"

#include "plugin/objects/object.h"
#include "plugin/objects/struct_size.h"

/* Returns the implementation of OBJECT, or NULL if it records no operators. */
static const kpti_tracer_impl *recorder_of(const kpti_object *object)
{
    const kpti_tracer_impl *impl = object->impl;
    return impl->begin_operator ? impl : NULL;
}

kpt_status kpti_api_name_operator(kpt_handle self, kpt_str name, uint32_t scope, uint32_t *out)
{
    kpti_object *object = kpti_handle_peek(self, &kpti_tracer_kind);
    const kpti_tracer_impl *impl;
    if (out) *out = 0;
    if (!object) return KPT_E_HANDLE;
    if (!out || !name.data || !name.size || scope > KPT_SCOPE_MAX) return KPT_E_INVALID;
    impl = recorder_of(object);
    *out = impl ? impl->name_operator(object->self, name, scope) : 1;
    return *out ? KPT_OK : KPT_E_MEMORY;
}

/* Called for every operator of the host, so it only peeks, and reads a struct of its own version in place. */
KPTI_HOT kpt_status kpti_api_begin_operator(kpt_handle self, const kpt_operator *op,
                                            uint64_t *token)
{
    kpti_object *object = kpti_handle_peek(self, &kpti_tracer_kind);
    const kpti_tracer_impl *impl;
    kpt_operator local;
    kpt_status status = KPT_OK;
    if (token) *token = 0;
    if (!object) return KPT_E_HANDLE;
    if (!op || !token) return KPT_E_INVALID;
    if (op->struct_size != sizeof local) {
        status = kpti_size_read(&local, sizeof local, op, KPT_OPERATOR_V1_SIZE);
        op = &local;
    }
    if (status != KPT_OK) return status;
    if (op->flags & ~(uint32_t)KPT_OPERATOR_ASYNC) return KPT_E_UNSUPPORTED;
    if (!op->name == !op->text.size || (op->text.size && !op->text.data) ||
        (op->inputs.size && !op->inputs.data) || op->scope > KPT_SCOPE_MAX)
        return KPT_E_INVALID;
    impl = recorder_of(object);
    if (impl) *token = impl->begin_operator(object->self, self, op);
    return KPT_OK;
}

KPTI_HOT kpt_status kpti_api_end_operator(kpt_handle self, uint64_t token)
{
    kpti_object *object = kpti_handle_peek(self, &kpti_tracer_kind);
    if (!object) return KPT_E_HANDLE;
    if (token && recorder_of(object)) recorder_of(object)->end_operator(object->self, token);
    return KPT_OK;
}

const kpt_tracer_ops *kpti_api_direct_ops(const kpti_tracer_impl *impl, const kpt_tracer_ops *ops)
{
    static kpt_tracer_ops direct;
    if (!impl->get_direct_ops) return ops;
    kpti_handles_lock(); /* a fork waits for it; the backend acquires no lock */
    if (!direct.struct_size) {
        const kpti_operator_ops own =
            impl->get_direct_ops((kpti_operator_ops){ops->begin_operator, ops->end_operator});
        direct = *ops;
        direct.begin_operator = own.begin;
        direct.end_operator = own.end;
    }
    kpti_handles_unlock();
    return &direct;
}
