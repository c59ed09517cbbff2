/* struct_rows.h: helpers to define the rows of structs. */
#ifndef KPT_UNIT_STRUCT_ROWS_H
#define KPT_UNIT_STRUCT_ROWS_H

#include "tests/abi/plugin_unit/struct_world.h"

template <typename Struct> Struct *as(void *peer)
{
    return static_cast<Struct *>(peer);
}

/* Returns a copy of today's fields of a peer's struct, which may be at any address. */
template <typename Struct> Struct copy_of(const void *peer)
{
    Struct local;
    uint32_t filled;
    KPT_INIT(&local);
    memcpy(&filled, peer, sizeof filled);
    memcpy(&local, peer, filled < sizeof local ? filled : sizeof local);
    return local;
}

template <typename Made> bool is_object(const void *peer)
{
    Made made = copy_of<Made>(peer);
    return made.ops && made.self && made.flags == KPT_OBJECT_NOOP;
}

template <typename Made> kpt_status destroy_after(kpt_status status, const void *peer)
{
    if (status == KPT_OK) {
        Made made = copy_of<Made>(peer);
        EXPECT_EQ(made.ops->destroy(made.self), KPT_OK);
    }
    return status;
}

/* A foreign factory that returns the ops table under test. */
template <typename Args, typename Made, typename Ops>
kpt_status make_strange(void *make_ctx, const Args *, Made *out)
{
    out->ops = static_cast<const Ops *>(make_ctx);
    out->self = 99;
    return KPT_OK;
}

template <typename Args, typename Made, typename Ops>
kpt_status use_strange_ops(struct_world &w, uint32_t kind, void *peer,
                           kpt_status (*make)(struct_world &world, Args *args, Made *made))
{
    const auto registry = w.table<kpt_registry>(KPT_EXT_REGISTRY);
    uint64_t token = 0;
    Args args;
    Made made;
    KPT_INIT(&args);
    KPT_INIT(&made);
    auto factory = reinterpret_cast<kpt_any_fn>(make_strange<Args, Made, Ops>);
    EXPECT_EQ(registry.add(w.info.self, kind, factory, peer, &token), KPT_OK);
    kpt_status status = make(w, &args, &made);
    EXPECT_EQ(made.ops, status == KPT_OK ? peer : nullptr);
    EXPECT_EQ(registry.remove(w.info.self, token), KPT_OK);
    return status;
}

template <typename Struct> void empty(struct_world &, void *whole)
{
    KPT_INIT(as<Struct>(whole));
}

/* Empty except for one field. */
template <typename Struct, auto Field, auto Value> void with(struct_world &, void *whole)
{
    KPT_INIT(as<Struct>(whole));
    as<Struct>(whole)->*Field = Value;
}
inline std::string of_plugin(const struct_world &w)
{
    return w.plugin_text();
}
inline std::string of_tracer(const struct_world &w)
{
    return w.tracer_text();
}

/* The test's name, the struct's V1 size, today's size, and that it has a struct_size. */
#define SIZED(name, type, upper) name, KPT_##upper##_V1_SIZE, sizeof(type), false

/* Rows of the host, its tracers and recordings; of the other objects. */
std::vector<row> tracer_rows();
std::vector<row> object_rows();

#endif
