#include "plugin/objects/object_factory.h"

#include "core/base/assert.h"
#include "plugin/base/verbose_log.h"
#include "plugin/objects/sink_wrapper.h"
#include "plugin/objects/struct_size.h"

/* The state of one make call. */
typedef struct making {
    const kpti_object_class *object_class;
    kpti_host_binding *binding;
    kpti_make_args args;
    kpti_made made;
    kpti_error error;
} making;

/* Makes a complete, checked copy of the args. */
static kpt_status take_args(making *m, const void *args)
{
    const kpti_object_class *p = m->object_class;
    kpt_status status = kpti_size_read(&m->args.of, p->args_size, args, p->args_v1_size);
    if (status == KPT_E_INVALID) return kpti_fail(&m->error, status, "args is NULL");
    if (status == KPT_E_SIZE)
        return kpti_fail(&m->error, status, "args' struct_size is below %u, its V1 size",
                         p->args_v1_size);
    return p->check(&m->binding->env, &m->args, &m->error);
}

/* Calls an added factory and checks its result as far as possible. */
static kpt_status ask_factory(kpt_any_fn make, void *make_ctx, void *job)
{
    making *m = job;
    kpt_status status;
    memset(&m->made, 0, sizeof m->made);
    status = m->object_class->call_factory(make, make_ctx, &m->args, &m->made);
    if (status == KPT_DECLINED) return status;
    if (status != KPT_OK)
        return kpti_fail(&m->error, status, "an added factory refused to make a %s: %s",
                         m->object_class->kind->noun, kpt_status_name(status));
    if (!m->made.self || kpti_size_check(m->made.ops, m->object_class->ops_v1_size) != KPT_OK)
        return kpti_fail(&m->error, KPT_E_INTERNAL,
                         "an added factory returned KPT_OK, but made no %s",
                         m->object_class->kind->noun);
    return KPT_OK;
}

/* Calls the factories that were added for this kind, if it can have any. */
static kpt_status ask_others(making *m)
{
    if (!m->object_class->factory_kind) return KPT_DECLINED;
    return kpti_registry_ask(&m->binding->registry, m->object_class->factory_kind, ask_factory, m);
}

/* Makes a handle for the implementation's object. */
static kpt_status adopt(making *m, kpti_object *object, const char *text)
{
    const kpti_object_class *p = m->object_class;
    kpt_status status = kpti_handle_new(p->kind, object, text, &m->made.self);
    if (status != KPT_OK)
        return kpti_fail(&m->error, status, "too many hosts and tracers in this process");
    m->made.ops = p->ops_of ? p->ops_of(object->impl) : p->ops;
    m->made.flags = object->impl == p->noop ? (uint32_t)KPT_OBJECT_NOOP : 0;
    return KPT_OK;
}

/* Makes an object of the implementation IMPL. TEXT is its first last_error. */
static kpt_status make_with(making *m, const void *impl, const char *text)
{
    const kpti_object_class *p = m->object_class;
    const kpti_env *env = &m->binding->env;
    kpti_object *object = kpti_alloc(env, sizeof *object);
    kpt_status status;
    if (!object) return kpti_fail(&m->error, KPT_E_MEMORY, "no memory for a %s", p->kind->noun);
    object->binding = m->binding;
    object->impl = impl;
    object->state = p->first_state;
    status = p->call_impl(impl, env, &m->args, object, &m->error);
    if (status == KPT_OK) {
        kpti_assert(object->impl == impl && object->binding == m->binding);
        status = adopt(m, object, text);
        if (status != KPT_OK) p->destroy(impl, object->self);
    }
    if (status != KPT_OK) kpti_free(env, object, sizeof *object);
    return status;
}

/* Returns the implementation, or NULL with the reason in WHY. */
static const void *find_impl(const making *m, kpti_error *why)
{
    const kpti_object_class *p = m->object_class;
    const kpt_host *host = &m->binding->env.host;
    const kpti_backend *backend = p->find ? NULL : kpti_backend_find(host, why);
    const void *impl = p->find ? p->find(host, why) : backend ? p->pick(backend) : NULL;
    if (backend && !impl) (void)kpti_fail(why, 0, "the backend has no %s", p->kind->noun);
    return impl;
}

/* Makes the implementation's object, or a no-op whose last_error is the reason. */
static kpt_status make_own(making *m)
{
    const kpti_object_class *p = m->object_class;
    kpti_error why = {""};
    const void *impl = find_impl(m, &why);
    if (impl) {
        kpt_status status = make_with(m, impl, "");
        if (status != KPT_DECLINED) return status;
        why = m->error;
    }
    kpti_say(&m->binding->env.host, KPT_LOG_DEBUG, "make: a no-op %s: %s", p->kind->noun, why.text);
    return make_with(m, p->noop, why.text);
}

kpt_status kpti_object_make(const kpti_object_class *object_class, kpt_handle binding,
                            const void *args, void *out)
{
    making m = {object_class,
                kpti_handle_pin(binding, &kpti_host_binding_kind),
                {{{0}}, {0}, {0}},
                {0},
                {""}};
    kpt_status status = kpti_size_check(out, KPT_FIELD_END(kpti_made, self));
    int own = 0;
    if (!m.binding) {
        if (status == KPT_OK) kpti_size_write(out, &m.made, sizeof m.made); /* zeros */
        return KPT_E_HANDLE;
    }
    if (status != KPT_OK) {
        (void)kpti_fail(&m.error, status, "out is NULL, or its struct_size below its V1 size");
        (void)kpti_handle_fail(binding, status, &m.error);
        kpti_handle_unpin(binding);
        return status;
    }
    status = take_args(&m, args);
    if (status == KPT_OK) {
        status = ask_others(&m);
        if (status == KPT_DECLINED) {
            status = make_own(&m);
            own = status == KPT_OK;
        }
    }
    if (status != KPT_OK) {
        memset(&m.made, 0, sizeof m.made);
        (void)kpti_handle_fail(binding, status, &m.error);
        kpti_say(&m.binding->env.host, KPT_LOG_WARNING, "make: the %s was not made: %s",
                 object_class->kind->noun, m.error.text);
    }
    kpti_size_write(out, &m.made, sizeof m.made);
    if (!own) kpti_handle_unpin(binding); /* the plugin's own object keeps the pin until destroy */
    return status;
}

kpt_status kpti_object_destroy(const kpti_object_class *object_class, kpt_handle self)
{
    kpti_call call;
    kpti_object *object;
    kpti_host_binding *binding;
    kpt_status status;
    if (kpti_sink_is_inside(kpti_handle_peek(self, object_class->kind))) {
        kpti_sink_refuse(self);
        return KPT_E_BUSY;
    }
    status = kpti_call_begin(&call, self, object_class->kind);
    if (status == KPT_OK) status = kpti_call_end(&call);
    if (status != KPT_OK) return status;
    object = call.object;
    binding = object->binding;
    kpti_assert(object->impl &&
                kpti_handle_peek(binding->handle, &kpti_host_binding_kind) == binding);
    object_class->destroy(object->impl, object->self);
    kpti_free(&binding->env, object, sizeof *object);
    kpti_handle_unpin(binding->handle);
    return KPT_OK;
}

kpt_status kpti_check_path(kpt_str path, char *out, size_t size, kpti_error *error)
{
    if (!path.data || path.size == 0) return kpti_fail(error, KPT_E_INVALID, "the path is empty");
    if (path.size >= size || memchr(path.data, 0, path.size))
        return kpti_fail(error, KPT_E_INVALID, "the path is too long, or has a NUL in it");
    memcpy(out, path.data, path.size);
    out[path.size] = 0;
    return KPT_OK;
}
