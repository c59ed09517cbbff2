/* scenario_bindings.c: several hosts in one process, one host that binds twice, and a library that is closed
 * while its tracer lives. */
#include <dlfcn.h>

#include "tests/abi/loading/helper.h"

void run_two_hosts(void)
{
    bound *a = bind_host("a");
    bound *b = bind_host("b");
    kpt_tracer_args wrong;
    kpt_tracer of_a, of_b, none;
    uint64_t blocks_a, blocks_b = b->host.live_blocks;
    CHECK(a->info.self != b->info.self, "one binding for two hosts");
    CHECK(a->host.live_blocks == blocks_b && blocks_b > 0, "each binding is in its host's memory");
    of_a = make_tracer(a);
    blocks_a = a->host.live_blocks;
    CHECK(blocks_a > blocks_b, "a tracer in no memory");
    CHECK(b->host.live_blocks == blocks_b, "a's tracer is in b's memory");
    of_b = make_tracer(b);
    CHECK(a->host.live_blocks == blocks_a, "b's tracer is in a's memory");
    CHECK(of_a.self != of_b.self, "one tracer for two hosts");

    KPT_INIT(&wrong);
    KPT_INIT(&none);
    wrong.tool_id = 99;
    CHECK(a->host.make_tracer(a->host.tracer_ctx, &wrong, &none) == KPT_E_INVALID, "tool_id");
    CHECK(strstr(error_text(a->info.last_error, a->info.self), "tool_id"), "a has no error text");
    CHECK(!error_text(b->info.last_error, b->info.self)[0], "b has a's error");

    CHECK(of_a.ops->stop(of_a.self) == KPT_OK, "stop");
    CHECK(of_b.ops->restart(of_b.self) == KPT_E_STATE, "b's is running still");
    CHECK(a->info.detach(a->info.self) == KPT_E_STATE, "a's tracer is alive");
    CHECK(of_a.ops->destroy(of_a.self) == KPT_OK, "destroy");
    release(a);
    CHECK(of_b.ops->stop(of_b.self) == KPT_OK, "b goes on without a");
    CHECK(of_b.ops->destroy(of_b.self) == KPT_OK, "destroy");
    release(b);
}

void run_twice(void)
{
    kpt_plugin_entry_fn entry = open_plugin();
    bound *b = bind_host("twice");
    kpt_plugin_info second;
    kpt_tracer first_made = make_tracer(b), made;
    kpt_tracer_make_fn old_make = b->host.make_tracer;
    void *old_ctx = b->host.tracer_ctx;
    kpt_tracer_args args;
    CHECK(open_plugin() == entry, "opened twice, it is another one");
    KPT_INIT(&second);
    CHECK(entry(&b->host.table, &second) == KPT_OK, "the entry again");
    CHECK(second.self != b->info.self && second.self, "each entry is a binding of its own");
    CHECK(b->host.tracers_registered == 2, "registered %u times", b->host.tracers_registered);
    CHECK(b->host.tracer_ctx != old_ctx, "the second binding has the first one's context");
    made = make_tracer(b);
    CHECK(second.detach(second.self) == KPT_E_STATE, "its tracer is alive");
    CHECK(made.ops->destroy(made.self) == KPT_OK, "destroy");
    CHECK(second.detach(second.self) == KPT_OK, "detach");

    /* The second binding is dead, and so is its factory; the first is unchanged. */
    KPT_INIT(&args);
    memset(&made, 0xEE, sizeof made);
    made.struct_size = sizeof made;
    CHECK(b->host.make_tracer(b->host.tracer_ctx, &args, &made) == KPT_E_HANDLE, "a dead binding");
    CHECK(!made.ops && !made.self && !made.flags, "a failed make leaves zeros");
    CHECK(old_make(old_ctx, &args, &made) == KPT_OK, "the first binding");
    CHECK(made.ops->destroy(made.self) == KPT_OK, "destroy");
    CHECK(first_made.ops->destroy(first_made.self) == KPT_OK, "destroy");
    release(b);
}

void run_closed(void)
{
    void *library = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
    kpt_plugin_entry_fn entry = NULL;
    mock_host host;
    kpt_plugin_info info;
    kpt_tracer_args args;
    kpt_tracer tracer;
    kpt_stats stats;
    CHECK(library, "%s", dlerror());
    *(void **)&entry = dlsym(library, KPT_PLUGIN_ENTRY_NAME);
    mock_host_init(&host, "closes early");
    KPT_INIT(&info);
    KPT_INIT(&args);
    KPT_INIT(&tracer);
    KPT_INIT(&stats);
    CHECK(entry(&host.table, &info) == KPT_OK, "entry");
    CHECK(host.make_tracer(host.tracer_ctx, &args, &tracer) == KPT_OK, "make");
    CHECK(dlclose(library) == 0, "%s", dlerror());
    CHECK(dlopen(plugin_path, RTLD_NOW | RTLD_NOLOAD), "it was unloaded under its tracer");
    CHECK(tracer.ops->get_stats(tracer.self, &stats) == KPT_OK, "get_stats");
    CHECK(stats.state == KPT_STATE_RUNNING, "state %u", stats.state);
    CHECK(tracer.ops->destroy(tracer.self) == KPT_OK, "destroy");
    CHECK(info.detach(info.self) == KPT_OK, "detach");
    KPT_INIT(&info);
    CHECK(entry(&host.table, &info) == KPT_OK, "and the entry still works");
    CHECK(info.detach(info.self) == KPT_OK, "detach");
    CHECK(host.live_blocks == 0, "memory left");
}
