/* v1_plugin.c: a plugin as it was written for version 1.0 of the contract, and never touched again:
 * it shows that hosts of today serve an old plugin. It compiles against tests/v1/abi only.
 *
 * This file has its door and its table of objects. One thread calls it at a time. */
#include "v1_plugin.h"

enum { MOST_OBJECTS = 32, LENT_BYTES = 100 };
static object objects[MOST_OBJECTS];
static char process_error[120];

kpt_status read_in(void *local, uint32_t size, const void *theirs, uint32_t v1_size)
{
    uint32_t filled;
    memset(local, 0, size);
    if (!theirs) return KPT_E_INVALID;
    memcpy(&filled, theirs, sizeof filled);
    if (filled < v1_size) return KPT_E_SIZE;
    if (filled > size) filled = size;
    memcpy(local, theirs, filled);
    memcpy(local, &filled, sizeof filled);
    return KPT_OK;
}

kpt_status check_out(const void *theirs, uint32_t v1_size)
{
    uint32_t size;
    if (!theirs) return KPT_E_INVALID;
    memcpy(&size, theirs, sizeof size);
    return size < v1_size ? KPT_E_SIZE : KPT_OK;
}

void write_out(void *theirs, const void *local, uint32_t size)
{
    uint32_t filled;
    memcpy(&filled, theirs, sizeof filled);
    if (filled > size) filled = size;
    memcpy(theirs, local, filled);
    memcpy(theirs, &filled, sizeof filled);
}

object *find(kpt_handle handle, int kind)
{
    uint64_t index = handle & 0xFF;
    object *o = index && index <= MOST_OBJECTS ? &objects[index - 1] : NULL;
    return o && o->kind == kind && o->generation == handle >> 8 ? o : NULL;
}

static object *take(int kind, kpt_handle *handle)
{
    for (uint32_t i = 0; i < MOST_OBJECTS; i++) {
        uint32_t generation = objects[i].generation + 1;
        if (objects[i].kind != FREE) continue;
        memset(&objects[i], 0, sizeof objects[i]);
        objects[i].kind = kind;
        objects[i].generation = generation;
        *handle = (kpt_handle)generation << 8 | (i + 1);
        return &objects[i];
    }
    return NULL;
}

kpt_status fail(object *o, kpt_status status, const char *text)
{
    (void)snprintf(o ? o->error : process_error, sizeof process_error, "%s", text);
    return status;
}

kpt_status last_error(kpt_handle self, char *buf, uint64_t size, uint64_t *needed)
{
    const char *text = self ? "no such object" : process_error;
    if (!buf && size) return KPT_E_INVALID;
    for (int kind = BOND; kind <= OBSERVER; kind++)
        if (find(self, kind)) text = find(self, kind)->error;
    if (needed) *needed = strlen(text);
    if (size) (void)snprintf(buf, (size_t)size, "%s", text);
    return KPT_OK;
}

kpt_status make(void *make_ctx, int kind, const void *ops, void *out, object **made)
{
    struct {
        uint32_t struct_size;
        uint32_t flags;
        const void *ops;
        kpt_handle self;
    } local = {sizeof local, 0, ops, 0};
    kpt_handle bond = (kpt_handle)(uintptr_t)make_ctx;
    object *b = find(bond, BOND), *o;
    kpt_status status = check_out(out, KPT_TRACER_V1_SIZE);
    if (!b) return KPT_E_HANDLE;
    if (status != KPT_OK) return fail(b, status, "out is NULL or too small");
    o = take(kind, &local.self);
    if (!o) return fail(b, KPT_E_LIMIT, "too many objects");
    o->host = b->host;
    o->bond = bond;
    o->state = kind == TRACER ? KPT_STATE_RUNNING : 1;
    o->lent = o->host.alloc ? o->host.alloc(o->host.ctx, LENT_BYTES) : malloc(LENT_BYTES);
    if (!o->lent) {
        o->kind = FREE;
        return fail(b, KPT_E_MEMORY, "no memory");
    }
    b->alive++;
    *made = o;
    write_out(out, &local, sizeof local);
    return KPT_OK;
}

kpt_status destroy(kpt_handle self, int kind)
{
    object *o = find(self, kind);
    if (!o) return KPT_E_HANDLE;
    if (o->host.dealloc)
        o->host.dealloc(o->host.ctx, o->lent, LENT_BYTES);
    else
        free(o->lent);
    find(o->bond, BOND)->alive--;
    o->kind = FREE;
    return KPT_OK;
}

static kpt_status no_extension(kpt_handle self, kpt_str name, void *out)
{
    (void)name;
    (void)out;
    return find(self, BOND) ? KPT_E_UNSUPPORTED : KPT_E_HANDLE;
}

static kpt_status detach(kpt_handle self)
{
    object *o = find(self, BOND);
    if (!o) return KPT_E_HANDLE;
    if (o->alive) return fail(o, KPT_E_STATE, "detach: objects are alive");
    o->kind = FREE;
    return KPT_OK;
}

__attribute__((visibility("default"))) kpt_status kpt_plugin_entry_v1(const kpt_host *host,
                                                                      kpt_plugin_info *out);

kpt_status kpt_plugin_entry_v1(const kpt_host *host, kpt_plugin_info *out)
{
    kpt_plugin_info info = {0};
    kpt_host h;
    object *o = NULL;
    void *ctx;
    kpt_status status = check_out(out, KPT_PLUGIN_INFO_V1_SIZE);
    if (status != KPT_OK) return status;
    info.last_error = last_error;
    status = read_in(&h, sizeof h, host, KPT_HOST_V1_SIZE);
    if (status == KPT_OK && (h.flags || h.tick_flags)) status = KPT_E_UNSUPPORTED;
    if (status == KPT_OK && !h.register_tracer) status = KPT_E_INVALID;
    if (status == KPT_OK && !(o = take(BOND, &info.self))) status = KPT_E_LIMIT;
    if (status == KPT_OK) {
        o->host = h;
        ctx = (void *)(uintptr_t)info.self;
        status = h.register_tracer(h.ctx, make_tracer, ctx);
        if (status == KPT_OK && h.register_memory_tracer)
            (void)h.register_memory_tracer(h.ctx, make_memory, ctx);
        if (status == KPT_OK && h.register_observer)
            (void)h.register_observer(h.ctx, make_observer, ctx);
        if (h.log) h.log(h.ctx, KPT_LOG_INFO, kpt_str_of("a V1 plugin says hello"));
    }
    if (status == KPT_OK) {
        info.abi_minor = KPT_ABI_MINOR;
        info.name = kpt_str_of("v1_plugin");
        info.version = kpt_str_of("1.0");
        info.get_extension = no_extension;
        info.detach = detach;
    } else {
        if (o) o->kind = FREE;
        info.self = 0;
        (void)fail(NULL, status, "the host's table was refused");
    }
    write_out(out, &info, sizeof info);
    return status;
}
