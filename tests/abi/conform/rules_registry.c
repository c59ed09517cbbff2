/* rules_registry.c: R75x: the registry of added factories. A plugin need not have one. */
#include "tests/abi/conform/conform.h"

/* A factory that counts its calls and returns the given status; with KPT_OK, it returns its own tracer. */
typedef struct factory {
    conform *c;
    kpt_registry *registry;
    uint64_t token;
    kpt_status answer;
    kpt_status inside; /* the result of remove, called inside the factory */
    int remove_inside;
    int bogus; /* answer KPT_OK without a tracer */
    uint32_t calls;
} factory;

static const kpt_tracer_ops own_ops; /* recognised by its address; too small to be called */

static kpt_tracer_ops complete_ops(void)
{
    kpt_tracer_ops ops = own_ops;
    ops.struct_size = sizeof ops;
    return ops;
}

static kpt_status make_own(void *ctx, const kpt_tracer_args *args, kpt_tracer *out)
{
    static kpt_tracer_ops ops;
    factory *f = ctx;
    (void)args;
    ops = complete_ops();
    f->calls++;
    if (f->remove_inside) f->inside = f->registry->remove(f->c->info.self, f->token);
    if (f->answer == KPT_OK && !f->bogus) {
        out->ops = &ops;
        out->self = f->token;
    }
    return f->answer;
}

static kpt_registry open_registry(conform *c)
{
    kpt_registry registry;
    kpt_tracer t;
    kpt_status status;
    conform_make(c, &t);
    (void)t.ops->destroy(t.self);
    KPT_INIT(&registry);
    status = c->info.get_extension(c->info.self, kpt_str_of(KPT_EXT_REGISTRY), &registry);
    if (status == KPT_E_UNSUPPORTED) conform_unreached(c, "the plugin has no registry");
    EXPECT(c, status == KPT_OK && registry.add && registry.remove, "get_extension returned %s",
           kpt_status_name(status));
    return registry;
}

static void add(factory *f, conform *c, kpt_registry *registry, kpt_status answer)
{
    memset(f, 0, sizeof *f);
    f->c = c;
    f->registry = registry;
    f->answer = answer;
    if (registry->add(c->info.self, KPT_FACTORY_TRACER, (kpt_any_fn)make_own, f, &f->token) !=
        KPT_OK)
        conform_unreached(c, "add failed");
}

static kpt_status make(conform *c, kpt_tracer *out)
{
    kpt_tracer_args args;
    KPT_INIT(&args);
    KPT_INIT(out);
    return conform_try_make(c, &args, out);
}

static void last_wins(conform *c)
{
    kpt_registry registry = open_registry(c);
    factory first;
    factory second;
    kpt_tracer t;
    add(&first, c, &registry, KPT_OK);
    add(&second, c, &registry, KPT_OK);
    EXPECT_STATUS(c, KPT_OK, make(c, &t));
    EXPECT(c, second.calls == 1 && first.calls == 0 && t.self == second.token,
           "the factory that was added last did not make the tracer");
}

static void declining(conform *c)
{
    kpt_registry registry = open_registry(c);
    factory first;
    factory second;
    kpt_tracer t;
    add(&first, c, &registry, KPT_DECLINED);
    add(&second, c, &registry, KPT_DECLINED);
    EXPECT_STATUS(c, KPT_OK, make(c, &t));
    EXPECT(c, first.calls == 1 && second.calls == 1, "not all factories were called");
    (void)t.ops->stop(t.self);
    EXPECT_STATUS(c, KPT_OK, t.ops->destroy(t.self)); /* in the end the plugin's own tracer */
}

static void removing(conform *c)
{
    kpt_registry registry = open_registry(c);
    factory f;
    kpt_tracer t;
    add(&f, c, &registry, KPT_OK);
    EXPECT_STATUS(c, KPT_OK, registry.remove(c->info.self, f.token));
    EXPECT_STATUS(c, KPT_OK, make(c, &t));
    EXPECT(c, f.calls == 0, "a removed factory was called");
    EXPECT_STATUS(c, KPT_E_HANDLE, registry.remove(c->info.self, f.token));
    EXPECT_STATUS(c, KPT_E_HANDLE, registry.remove(c->info.self, 0));
}

static void removing_inside(conform *c)
{
    kpt_registry registry = open_registry(c);
    factory f;
    kpt_tracer t;
    add(&f, c, &registry, KPT_DECLINED);
    f.remove_inside = 1;
    (void)make(c, &t);
    if (f.calls != 1) conform_unreached(c, "the factory was not called");
    conform_expect_status(c, KPT_E_BUSY, f.inside, "remove from inside the factory");
    EXPECT_STATUS(c, KPT_OK, registry.remove(c->info.self, f.token));
}

static void bad_add(conform *c)
{
    kpt_registry registry = open_registry(c);
    uint64_t token;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED,
                  registry.add(c->info.self, 99, (kpt_any_fn)make_own, NULL, &token));
    EXPECT_STATUS(c, KPT_E_INVALID,
                  registry.add(c->info.self, KPT_FACTORY_TRACER, NULL, NULL, &token));
    EXPECT_STATUS(c, KPT_E_INVALID,
                  registry.add(c->info.self, KPT_FACTORY_TRACER, (kpt_any_fn)make_own, NULL, NULL));
}

static void bogus(conform *c)
{
    kpt_registry registry = open_registry(c);
    factory f;
    kpt_tracer t;
    add(&f, c, &registry, KPT_OK);
    f.bogus = 1;
    EXPECT(c, make(c, &t) < 0, "a factory made no object, but make did not fail");
}

const conform_rule conform_registry_rules[] = {
    RULE(R751, "the factory that was added last makes the object", last_wins),
    RULE(R752, "after a factory declines, the next one is called", declining),
    RULE(R753, "a removed factory is not called; an unknown token is KPT_E_HANDLE", removing),
    RULE(R754, "remove from inside the factory is KPT_E_BUSY, afterwards KPT_OK", removing_inside),
    RULE(R755, "factories of an unknown kind, or NULL, are refused", bad_add),
    RULE(R756, "a factory that returns KPT_OK without an object makes make fail", bogus),
    {NULL, NULL, NULL},
};
