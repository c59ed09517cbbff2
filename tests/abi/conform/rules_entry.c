/* rules_entry.c: R1xx: loading, the entry, and the end of the binding. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/abi/conform/conform.h"

static void exports_entry(conform *c)
{
    void *library = dlopen(c->path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) conform_unreached(c, "%s", dlerror());
    EXPECT(c, dlsym(library, KPT_PLUGIN_ENTRY_NAME), "%s", dlerror());
}

static void loads_now(conform *c)
{
    EXPECT(c, dlopen(c->path, RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
}

static void stays_loaded(conform *c)
{
    void *library = dlopen(c->path, RTLD_NOW | RTLD_LOCAL);
    if (!library) conform_unreached(c, "%s", dlerror());
    (void)dlclose(library);
    EXPECT(c, dlopen(c->path, RTLD_NOW | RTLD_NOLOAD), "it was unloaded: link it with -z nodelete");
}

static void entry_answers(conform *c)
{
    kpt_status status;
    conform_load(c);
    status = c->entry(&c->host.table, &c->info);
    EXPECT(c, status == KPT_OK || status == KPT_DECLINED, "it returned %s (%d)",
           kpt_status_name(status), status);
    if (status == KPT_DECLINED)
        EXPECT(c, !c->host.tracers_registered, "it registered a factory and then declined");
}

static void null_host(conform *c)
{
    conform_load(c);
    EXPECT_STATUS(c, KPT_E_INVALID, c->entry(NULL, &c->info));
}

/* Detaches; the rule continues with a fresh host. */
static void start_over(conform *c)
{
    (void)c->info.detach(c->info.self);
    mock_host_init(&c->host, "kpt_conform");
    KPT_INIT(&c->info);
}

/* The rules on what the entry refuses prove nothing about a plugin that refuses everything. */
static void must_accept_first(conform *c)
{
    conform_enter(c);
    start_over(c);
}

/* Nor do rules on odd hosts of a plugin that does not serve a plain one. */
static void must_serve_first(conform *c)
{
    kpt_tracer tracer;
    conform_record(c, &tracer);
    (void)tracer.ops->destroy(tracer.self);
    start_over(c);
}

static void refused(conform *c, kpt_status wanted)
{
    conform_expect_status(c, wanted, c->entry(&c->host.table, &c->info), "the entry");
    EXPECT(c, !c->host.tracers_registered, "a factory was registered despite the error");
    EXPECT(c, c->host.live_blocks == 0, "%llu blocks of memory were not freed",
           (unsigned long long)c->host.live_blocks);
}

static void null_info(conform *c)
{
    must_accept_first(c);
    EXPECT_STATUS(c, KPT_E_INVALID, c->entry(&c->host.table, NULL));
    EXPECT(c, !c->host.tracers_registered, "a factory was registered despite the error");
}

static void small_host(conform *c)
{
    static const uint32_t sizes[] = {0, sizeof(uint32_t), KPT_HOST_V1_SIZE - 1};
    must_accept_first(c);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        c->host.table.struct_size = sizes[i];
        refused(c, KPT_E_SIZE);
    }
}

static void small_info(conform *c)
{
    static const uint32_t sizes[] = {0, sizeof(uint32_t), KPT_PLUGIN_INFO_V1_SIZE - 1};
    must_accept_first(c);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(&c->info, 0xA5, sizeof c->info);
        c->info.struct_size = sizes[i];
        refused(c, KPT_E_SIZE);
        EXPECT(c,
               c->info.struct_size == sizes[i] &&
                   conform_filled(&c->info.abi_minor, 0xA5, sizeof c->info - sizeof(uint32_t)),
               "it wrote into a struct of %u bytes", sizes[i]);
    }
}

static void host_sizes(conform *c, uint32_t claimed, uint32_t bytes)
{
    const kpt_host *table;
    must_accept_first(c);
    table = conform_sized(&c->host.table, sizeof c->host.table, claimed, bytes);
    EXPECT_STATUS(c, KPT_OK, c->entry(table, &c->info));
    EXPECT(c, c->host.make_tracer, "no factory was registered");
}

static void exact_host(conform *c)
{
    host_sizes(c, KPT_HOST_V1_SIZE, KPT_HOST_V1_SIZE);
}

static void large_host(conform *c)
{
    host_sizes(c, sizeof(kpt_host) + 64, sizeof(kpt_host) + 64);
    host_sizes(c, UINT32_MAX, sizeof(kpt_host) + 64);
}

static void info_bounds(conform *c)
{
    enum { TAIL = 64 };
    kpt_plugin_info *info;
    must_accept_first(c);
    info = conform_sized(&c->info, sizeof c->info, KPT_PLUGIN_INFO_V1_SIZE,
                         KPT_PLUGIN_INFO_V1_SIZE); /* a step further would crash */
    EXPECT_STATUS(c, KPT_OK, c->entry(&c->host.table, info));
    info = conform_sized(&c->info, sizeof c->info, KPT_PLUGIN_INFO_V1_SIZE,
                         KPT_PLUGIN_INFO_V1_SIZE + TAIL);
    EXPECT_STATUS(c, KPT_OK, c->entry(&c->host.table, info));
    EXPECT(c, conform_filled((char *)info + KPT_PLUGIN_INFO_V1_SIZE, 0xA5, TAIL),
           "it wrote past the end of the struct");
}

static void info_size(conform *c)
{
    kpt_plugin_info *info;
    must_accept_first(c);
    info = conform_sized(&c->info, sizeof c->info, KPT_PLUGIN_INFO_V1_SIZE, sizeof c->info + 64);
    EXPECT_STATUS(c, KPT_OK, c->entry(&c->host.table, info));
    EXPECT(c, info->struct_size == KPT_PLUGIN_INFO_V1_SIZE, "it reports %u filled bytes of %u",
           info->struct_size, KPT_PLUGIN_INFO_V1_SIZE);
}

static void registers_once(conform *c)
{
    kpt_status status;
    conform_load(c);
    status = c->entry(&c->host.table, &c->info);
    if (status != KPT_OK) conform_unreached(c, "the entry returned %s", kpt_status_name(status));
    EXPECT(c, c->host.tracers_registered == 1 && c->host.make_tracer,
           "register_tracer was called %u times", c->host.tracers_registered);
}

static void bare_host(conform *c)
{
    mock_host *host = &c->host;
    kpt_tracer tracer;
    kpt_host full;
    must_serve_first(c);
    full = host->table;
    KPT_INIT(&host->table);
    host->table.ctx = full.ctx;
    host->table.register_tracer = full.register_tracer;
    EXPECT_STATUS(c, KPT_OK, c->entry(&host->table, &c->info));
    conform_make(c, &tracer);
    EXPECT_STATUS(c, KPT_OK, tracer.ops->stop(tracer.self));
    EXPECT_STATUS(c, KPT_OK, tracer.ops->destroy(tracer.self));
}

static void register_refused(conform *c)
{
    must_accept_first(c);
    c->host.register_answer = KPT_E_LIMIT;
    refused(c, KPT_E_LIMIT);
}

static void half_allocator(conform *c)
{
    must_accept_first(c);
    c->host.table.dealloc = NULL;
    refused(c, KPT_E_INVALID);
    mock_host_init(&c->host, "kpt_conform");
    c->host.table.alloc = NULL;
    refused(c, KPT_E_INVALID);
}

static void no_register(conform *c)
{
    must_accept_first(c);
    c->host.table.register_tracer = NULL;
    refused(c, KPT_E_INVALID);
}

static void unknown_flags(conform *c)
{
    must_accept_first(c);
    c->host.table.flags = 1U << 31;
    refused(c, KPT_E_UNSUPPORTED);
    c->host.table.flags = 0;
    c->host.table.tick_flags = 1U << 31;
    refused(c, KPT_E_UNSUPPORTED);
}

static void silent(conform *c)
{
    FILE *printed = tmpfile();
    kpt_tracer tracer;
    if (!printed) conform_unreached(c, "no temporary file");
    (void)fflush(NULL);
    (void)dup2(fileno(printed), STDOUT_FILENO);
    (void)dup2(fileno(printed), STDERR_FILENO);
    conform_record(c, &tracer);
    (void)tracer.ops->destroy(tracer.self);
    (void)c->info.detach(c->info.self);
    (void)fflush(NULL);
    EXPECT(c, lseek(fileno(printed), 0, SEEK_END) == 0, "something was printed");
}

static void second_entry(conform *c)
{
    kpt_plugin_info second;
    conform_enter(c);
    KPT_INIT(&second);
    EXPECT_STATUS(c, KPT_OK, c->entry(&c->host.table, &second));
    EXPECT(c, second.self != c->info.self, "both bindings have the handle %llx",
           (unsigned long long)second.self);
    EXPECT_STATUS(c, KPT_OK, second.detach(second.self));
    EXPECT_STATUS(c, KPT_OK, c->info.detach(c->info.self));
}

static void complete_info(conform *c)
{
    conform_enter(c);
    EXPECT(c, c->info.self, "self is 0");
    EXPECT(c, c->info.name.data && c->info.name.size, "name is empty");
    EXPECT(c, c->info.version.data && c->info.version.size, "version is empty");
    EXPECT(c, c->info.last_error && c->info.get_extension && c->info.detach,
           "a function is missing");
}

static void entry_without_memory(conform *c)
{
    kpt_status status = KPT_E_MEMORY;
    must_accept_first(c);
    for (uint64_t at = 1; status != KPT_OK; at++) {
        mock_host_init(&c->host, "kpt_conform");
        KPT_INIT(&c->info);
        c->host.fail_alloc_at = at;
        status = c->entry(&c->host.table, &c->info);
        if (status == KPT_OK) break;
        EXPECT(c, status == KPT_E_MEMORY, "with allocation %llu failing it returned %s",
               (unsigned long long)at, kpt_status_name(status));
        EXPECT(c, c->host.live_blocks == 0 && !c->host.tracers_registered,
               "with allocation %llu failing it leaked %llu blocks and kept %u registrations",
               (unsigned long long)at, (unsigned long long)c->host.live_blocks,
               c->host.tracers_registered);
    }
}

static void detach_frees(conform *c)
{
    conform_enter(c);
    EXPECT_STATUS(c, KPT_OK, c->info.detach(c->info.self));
    EXPECT(c, c->host.live_blocks == 0 && c->host.bad_frees == 0,
           "%llu blocks were not freed, %llu were freed with a wrong size",
           (unsigned long long)c->host.live_blocks, (unsigned long long)c->host.bad_frees);
}

static void detach_refused(conform *c)
{
    kpt_tracer tracer;
    conform_make(c, &tracer);
    EXPECT_STATUS(c, KPT_E_STATE, c->info.detach(c->info.self));
    (void)tracer.ops->stop(tracer.self);
    EXPECT_STATUS(c, KPT_OK, tracer.ops->destroy(tracer.self));
    EXPECT_STATUS(c, KPT_OK, c->info.detach(c->info.self));
}

static void make_after_detach(conform *c)
{
    kpt_tracer_args args;
    kpt_tracer tracer;
    conform_enter(c);
    KPT_INIT(&args);
    KPT_INIT(&tracer);
    if (c->info.detach(c->info.self) != KPT_OK) conform_unreached(c, "detach failed");
    EXPECT_STATUS(c, KPT_E_HANDLE, conform_try_make(c, &args, &tracer));
}

static void detach_twice(conform *c)
{
    conform_enter(c);
    if (c->info.detach(c->info.self) != KPT_OK) conform_unreached(c, "detach failed");
    EXPECT_STATUS(c, KPT_E_HANDLE, c->info.detach(c->info.self));
}

static void table_vanishes(conform *c)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    kpt_host *table = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    kpt_tracer tracer;
    must_serve_first(c);
    *table = c->host.table;
    EXPECT_STATUS(c, KPT_OK, c->entry(table, &c->info));
    (void)munmap(table, page);
    conform_make(c, &tracer);
    EXPECT_STATUS(c, KPT_OK, tracer.ops->stop(tracer.self));
    EXPECT_STATUS(c, KPT_OK, tracer.ops->destroy(tracer.self));
}

static void tick_sources(conform *c)
{
    must_accept_first(c);
    c->host.table.tick_source = 99;
    refused(c, KPT_E_UNSUPPORTED);
    c->host.table.tick_source = KPT_TICKS_HOST;
    c->host.table.now_ticks = NULL;
    refused(c, KPT_E_INVALID);
}

static void refusal_text(conform *c)
{
    char text[256] = "";
    must_accept_first(c);
    memset(&c->info, 0xA5, sizeof c->info);
    c->info.struct_size = sizeof c->info;
    c->host.table.register_tracer = NULL;
    if (c->entry(&c->host.table, &c->info) == KPT_OK) conform_unreached(c, "it was not refused");
    EXPECT(c, c->info.self == 0, "self is not 0");
    EXPECT(c, c->info.last_error, "last_error is missing");
    EXPECT_STATUS(c, KPT_OK, c->info.last_error(0, text, sizeof text, NULL));
    EXPECT(c, text[0], "last_error(0) is empty");
}

const conform_rule conform_entry_rules[] = {
    RULE(R101, "the entry kpt_plugin_entry_v1 is exported", exports_entry),
    RULE(R102, "it loads with RTLD_NOW and RTLD_LOCAL in a process without Python", loads_now),
    RULE(R103, "it stays loaded after dlclose", stays_loaded),
    RULE(R104, "the entry returns KPT_OK or KPT_DECLINED to a valid host", entry_answers),
    RULE(R105, "a NULL host is KPT_E_INVALID", null_host),
    RULE(R106, "a NULL info is KPT_E_INVALID", null_info),
    RULE(R107, "a host table below the V1 size is KPT_E_SIZE", small_host),
    RULE(R108, "an info struct below the V1 size is KPT_E_SIZE, and not written to", small_info),
    RULE(R109, "a host table is not read past its struct_size", exact_host),
    RULE(R110, "a host table larger than the plugin's is accepted", large_host),
    RULE(R111, "info is not written past its struct_size", info_bounds),
    RULE(R112, "info.struct_size is the number of filled bytes, never more than the host's size",
         info_size),
    RULE(R113, "an entry registers one tracer factory", registers_once),
    RULE(R114, "a host that has only register_tracer is accepted", bare_host),
    RULE(R115, "the entry returns the status of register_tracer", register_refused),
    RULE(R116, "a host with only one of alloc and dealloc is KPT_E_INVALID", half_allocator),
    RULE(R117, "a host without register_tracer is KPT_E_INVALID", no_register),
    RULE(R118, "unknown flags of the host are KPT_E_UNSUPPORTED", unknown_flags),
    RULE(R119, "nothing is printed without KPYTRACE_VERBOSE", silent),
    RULE(R120, "a second call of the entry makes a second binding", second_entry),
    RULE(R121, "info is complete", complete_info),
    RULE(R122, "an entry that runs out of memory is KPT_E_MEMORY and leaks nothing",
         entry_without_memory),
    RULE(R123, "detach frees all memory", detach_frees),
    RULE(R124, "detach while an object lives is KPT_E_STATE", detach_refused),
    RULE(R125, "make after detach is KPT_E_HANDLE", make_after_detach),
    RULE(R126, "detach twice is KPT_E_HANDLE", detach_twice),
    RULE(R127, "the host's table is copied: the host may free it after the entry", table_vanishes),
    RULE(R128, "an unknown tick source, and KPT_TICKS_HOST without now_ticks, are refused",
         tick_sources),
    RULE(R129, "a refused entry leaves self 0 and sets the text of last_error(0)", refusal_text),
    {NULL, NULL, NULL},
};
