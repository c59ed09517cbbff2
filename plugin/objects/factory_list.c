#include "plugin/objects/factory_list.h"

#include "core/base/assert.h"
#include "plugin/objects/handle.h"

kpt_status kpti_registry_add(kpti_registry *registry, uint32_t kind, kpt_any_fn make,
                             void *make_ctx, uint64_t *token)
{
    kpt_status status = KPT_E_LIMIT;
    if (!make || !token) return KPT_E_INVALID;
    if (kind < KPT_FACTORY_TRACER || kind > KPT_FACTORY_OBSERVER) return KPT_E_UNSUPPORTED;
    kpti_handles_lock();
    for (size_t i = 0; i < KPTI_MAX_FACTORIES && status != KPT_OK; i++) {
        kpti_factory *f = &registry->factories[i];
        if (f->token) continue;
        *f = (kpti_factory){++registry->last_token, make, make_ctx, kind, 0, 0};
        kpti_assert(kpti_factory_is_valid(f));
        *token = f->token;
        status = KPT_OK;
    }
    kpti_handles_unlock();
    return status;
}

kpt_status kpti_registry_remove(kpti_registry *registry, uint64_t token)
{
    kpt_status status = KPT_E_HANDLE;
    kpti_handles_lock();
    for (size_t i = 0; token && i < KPTI_MAX_FACTORIES; i++) {
        kpti_factory *f = &registry->factories[i];
        if (f->token != token) continue;
        f->removed = 1;
        status = f->calls ? KPT_E_BUSY : KPT_OK;
        if (!f->calls) f->token = 0;
        kpti_assert(kpti_factory_is_valid(f));
    }
    kpti_handles_unlock();
    return status;
}

/* Returns the newest factory of KIND that is older than BEFORE, after adding 1 to its calls. Returns NULL if
 * there is none. */
static kpti_factory *enter_next(kpti_registry *registry, uint32_t kind, uint64_t before)
{
    kpti_factory *best = NULL;
    kpti_handles_lock();
    for (size_t i = 0; i < KPTI_MAX_FACTORIES; i++) {
        kpti_factory *f = &registry->factories[i];
        if (!f->token || f->removed || f->kind != kind || f->token >= before) continue;
        if (!best || f->token > best->token) best = f;
    }
    if (best) best->calls++;
    kpti_handles_unlock();
    return best;
}

/* The slot of a factory that was removed meanwhile stays occupied until the host calls remove again and gets
 * KPT_OK. Only then may the caller of remove free make_ctx. */
static void leave(kpti_factory *f)
{
    kpti_handles_lock();
    kpti_assert(f->calls && f->token); /* a slot is not reused while a call runs */
    f->calls--;
    kpti_handles_unlock();
}

kpt_status kpti_registry_ask(kpti_registry *registry, uint32_t kind,
                             kpt_status (*ask)(kpt_any_fn make, void *make_ctx, void *job),
                             void *job)
{
    uint64_t before = UINT64_MAX;
    kpt_status status = KPT_DECLINED;
    kpti_factory *f;
    while (status == KPT_DECLINED && (f = enter_next(registry, kind, before))) {
        before = f->token;
        status = ask(f->make, f->make_ctx, job);
        leave(f);
    }
    return status;
}
