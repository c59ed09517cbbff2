/* sample_registry.c: the factories that others put in front of ours, an array in each binding. Changes
 * happen under the lock of the objects; no factory runs under it. */
#include "tests/plugins/sample.h"

static kpt_status add_locked(sample_binding *binding, uint32_t kind, kpt_any_fn make,
                             void *make_ctx, uint64_t *token)
{
    for (uint32_t i = 0; i < SAMPLE_FACTORIES; i++) {
        sample_factory *f = &binding->factories[i];
        if (f->token) continue;
        *f = (sample_factory){++binding->last_token, make, make_ctx, kind, 0, 0};
        *token = f->token;
        return KPT_OK;
    }
    return KPT_E_LIMIT;
}

static kpt_status add(kpt_handle plugin, uint32_t kind, kpt_any_fn make, void *make_ctx,
                      uint64_t *token)
{
    sample_binding *binding = (sample_binding *)sample_use(plugin, SAMPLE_BOND);
    kpt_status status;
    if (!binding) return KPT_E_HANDLE;
    if (!make || !token) {
        status = sample_refuse(&binding->object, KPT_E_INVALID, "add: make or token is NULL");
    } else if ((kind < KPT_FACTORY_TRACER || kind > KPT_FACTORY_OBSERVER) && !wrong("R755")) {
        status = sample_refuse(&binding->object, KPT_E_UNSUPPORTED, "add: the kind is unknown");
    } else {
        sample_lock();
        status = add_locked(binding, kind, make, make_ctx, token);
        sample_unlock();
        if (status != KPT_OK)
            (void)sample_refuse(&binding->object, status, "add: there are too many factories");
    }
    sample_release(&binding->object);
    return status;
}

/* A slot stays taken until remove can return KPT_OK, which proves that no call is inside. */
static kpt_status remove_locked(sample_binding *binding, uint64_t token)
{
    for (uint32_t i = 0; token && i < SAMPLE_FACTORIES; i++) {
        sample_factory *f = &binding->factories[i];
        if (f->token != token) continue;
        f->removed = !wrong("R753");
        if (f->calls && !wrong("R754")) return KPT_E_BUSY;
        if (f->removed) f->token = 0;
        return KPT_OK;
    }
    return KPT_E_HANDLE;
}

static kpt_status take_away(kpt_handle plugin, uint64_t token)
{
    sample_binding *binding = (sample_binding *)sample_use(plugin, SAMPLE_BOND);
    kpt_status status;
    if (!binding) return KPT_E_HANDLE;
    sample_lock();
    status = remove_locked(binding, token);
    sample_unlock();
    if (status != KPT_OK)
        (void)sample_refuse(&binding->object, status,
                            "remove: the token is unknown, or its factory in use");
    sample_release(&binding->object);
    return status;
}

/* Returns the next factory of KIND to be called after LAST, with the call counted, or NULL. */
static sample_factory *enter_next(sample_binding *binding, uint32_t kind, uint64_t last)
{
    sample_factory *next = NULL;
    sample_lock();
    for (uint32_t i = 0; i < SAMPLE_FACTORIES; i++) {
        sample_factory *f = &binding->factories[i];
        if (!f->token || f->removed || f->kind != kind) continue;
        if (wrong("R751")) { /* the oldest first */
            if (f->token > last && (!next || f->token < next->token)) next = f;
        } else if ((!last || f->token < last) && (!next || f->token > next->token)) {
            next = f;
        }
    }
    if (next) next->calls++;
    sample_unlock();
    return next;
}

static kpt_status call_factory(const sample_factory *f, const void *args, sample_made *made)
{
    union {
        kpt_tracer tracer;
        kpt_memory_tracer memory;
        kpt_observer observer;
    } out;
    kpt_status status;
    KPT_INIT(&out.tracer);
    if (f->kind == KPT_FACTORY_TRACER)
        status = ((kpt_tracer_make_fn)f->make)(f->make_ctx, args, &out.tracer);
    else if (f->kind == KPT_FACTORY_MEMORY)
        status = ((kpt_memory_make_fn)f->make)(f->make_ctx, args, &out.memory);
    else
        status = ((kpt_observer_make_fn)f->make)(f->make_ctx, args, &out.observer);
    memcpy(made, &out, sizeof *made);
    return status;
}

/* Returns 1 if the object that a factory returned has a handle and a table. */
static int is_object(const sample_made *made, const sample_class *product)
{
    uint32_t size = 0;
    if (made->ops) memcpy(&size, made->ops, sizeof size);
    return made->self && size >= product->ops_v1_size;
}

kpt_status sample_registry_ask(sample_binding *binding, const sample_class *product,
                               const void *args, sample_made *made)
{
    kpt_status status = KPT_DECLINED;
    uint64_t last = 0;
    sample_factory *f;
    while (status == KPT_DECLINED && (f = enter_next(binding, product->kind, last))) {
        last = f->token;
        status = call_factory(f, args, made);
        sample_lock();
        f->calls--;
        sample_unlock();
        if (status == KPT_DECLINED && wrong("R752")) break;
    }
    if (status == KPT_OK && !is_object(made, product) && !wrong("R756"))
        return sample_refuse(&binding->object, KPT_E_INTERNAL, "an added factory made no object");
    if (status != KPT_OK && status != KPT_DECLINED)
        return sample_refuse(&binding->object, status, "an added factory made nothing");
    return status;
}

kpt_status sample_check_extension(sample_object *object, kpt_str name, const void *out)
{
    if (out && (name.data || !name.size)) return KPT_OK;
    return sample_refuse(object, KPT_E_INVALID, "get_extension: the name or out is NULL");
}

static kpt_status fill_extension(sample_object *binding, kpt_str name, void *out)
{
    static const kpt_registry registry = {sizeof registry, 0, add, take_away};
    static const struct {
        const char *name;
        const void *table;
        sample_layout layout;
    } extensions[] = {
        {KPT_EXT_REGISTRY, &registry, {sizeof registry, KPT_REGISTRY_V1_SIZE, 0, 0, 0}},
        {KPT_EXT_LOADER, &sample_loader, {sizeof sample_loader, KPT_LOADER_V1_SIZE, 0, 0, 0}},
        {KPT_EXT_TRACEBACK,
         &sample_traceback_maker,
         {sizeof sample_traceback_maker, KPT_TRACEBACK_MAKER_V1_SIZE, 0, 0, 0}},
        {KPT_EXT_GPU, &sample_gpu_maker, {sizeof sample_gpu_maker, KPT_GPU_MAKER_V1_SIZE, 0, 0, 0}},
    };
    kpt_status status;
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        if (!kpt_str_is(name, extensions[i].name)) continue;
        status = sample_check(out, &extensions[i].layout);
        if (status != KPT_OK)
            return sample_refuse(binding, status, "get_extension: out is below its V1 size");
        sample_write(out, &extensions[i].layout, extensions[i].table);
        return KPT_OK;
    }
    status = sample_refuse(binding, KPT_E_UNSUPPORTED, "get_extension: there is no such thing");
    return wrong("R701") ? KPT_OK : status;
}

kpt_status sample_get_plugin_extension(kpt_handle self, kpt_str name, void *out)
{
    sample_object *binding = sample_use(self, SAMPLE_BOND);
    kpt_status status;
    if (!binding) return KPT_E_HANDLE;
    status = sample_check_extension(binding, name, out);
    if (status == KPT_OK)
        status = fill_extension(binding, name, out);
    else if (wrong("R702"))
        status = KPT_OK;
    sample_release(binding);
    return status;
}
