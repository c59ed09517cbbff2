#include "hosts/standalone/session/shared_tracebacks.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "hosts/standalone/plugin_client.h"

typedef struct gatherer {
    kpti_plugin_client client; /* must not move: the plugin has its address */
    kpt_tracebacks object;
} gatherer;

static _Atomic(gatherer *) the_gatherer;

const kpt_tracebacks *kpti_tracebacks(void)
{
    const gatherer *made = atomic_load_explicit(&the_gatherer, memory_order_acquire);
    return made ? &made->object : NULL;
}

/* --- making it -------------------------------------------------------------------------------- */

static kpt_status fail_of_plugin(const gatherer *g, kpt_status status, kpti_session_error *error)
{
    (void)kpti_session_fail_of(error, status, "tracebacks can't be gathered",
                               g->client.info.last_error, g->client.info.self);
    if (status != KPT_E_MEMORY) error->status = KPT_E_STATE; /* the arguments are not wrong */
    return error->status;
}

static kpt_status make_object(gatherer *g, kpt_generated_fn generated, kpti_session_error *error)
{
    const kpt_plugin_info *info = &g->client.info;
    kpt_traceback_maker maker;
    kpt_tracebacks_args args;
    kpt_status status;
    KPT_INIT(&maker);
    KPT_INIT(&args);
    KPT_INIT(&g->object);
    args.generated = generated;
    status = info->get_extension(info->self, kpt_str_of(KPT_EXT_TRACEBACK), &maker);
    if (status == KPT_OK) status = maker.make(info->self, &args, &g->object);
    if (status != KPT_OK) return fail_of_plugin(g, status, error);
    if (!(g->object.flags & KPT_OBJECT_NOOP)) return KPT_OK;
    (void)kpti_session_fail_of(error, KPT_E_STATE, "tracebacks can't be gathered",
                               g->object.ops->last_error, g->object.self);
    (void)g->object.ops->destroy(g->object.self);
    return KPT_E_STATE;
}

/* Returns a gatherer whose binding is open, or NULL with an error. */
static gatherer *make_gatherer(const char *plugin, kpt_generated_fn generated,
                               kpti_session_error *error)
{
    gatherer *g = calloc(1, sizeof *g);
    if (!g) {
        (void)kpti_session_fail(error, KPT_E_MEMORY, "no memory for tracebacks");
        return NULL;
    }
    if (kpti_plugin_client_open(&g->client, plugin, NULL, error) == KPT_OK) {
        if (make_object(g, generated, error) == KPT_OK) return g;
        kpti_plugin_client_close(&g->client);
    }
    free(g);
    return NULL;
}

const kpt_tracebacks *kpti_tracebacks_make(const char *plugin, kpt_generated_fn generated,
                                           kpti_session_error *error)
{
    gatherer *made = make_gatherer(plugin, generated, error);
    gatherer *first = NULL;
    if (!made) return NULL;
    if (atomic_compare_exchange_strong_explicit(&the_gatherer, &first, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return &made->object;
    (void)made->object.ops->destroy(made->object.self);
    kpti_plugin_client_close(&made->client);
    free(made);
    return &first->object;
}

/* --- checks of its results --------------------------------------------------------------------- */

int kpti_symbols_are_whole(const kpt_symbols *symbols, uint64_t count)
{
    if (symbols->struct_size < KPT_SYMBOLS_V1_SIZE || symbols->symbol_stride < KPT_SYMBOL_V1_SIZE ||
        symbols->span_count != count)
        return 0;
    for (uint64_t i = 0; i < symbols->frame_count; i++)
        if (symbols->frames[i] >= symbols->symbol_count) return 0;
    for (uint64_t i = 0; i < count; i++) {
        const kpt_symbol_span span = symbols->spans[i];
        if (span.count > symbols->frame_count || span.first > symbols->frame_count - span.count)
            return 0;
    }
    return 1;
}
