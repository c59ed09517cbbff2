/* sample_loader.c: the extension KPT_EXT_LOADER: a tracer made from chunks, which is always stopped. */
#include "tests/plugins/sample.h"

static kpt_status take_all(sample_tracer *t, const kpt_load_args *args)
{
    for (;;) {
        kpt_chunk chunk;
        kpt_status status;
        KPT_INIT(&chunk);
        status = args->next(args->next_ctx, &chunk);
        if (status == KPT_DECLINED) return KPT_OK;
        if (status != KPT_OK) return wrong("R776") ? KPT_E_INTERNAL : status;
        status = sample_load_chunk(t, &chunk);
        if (status != KPT_OK) return status;
    }
}

static kpt_status load_own(sample_binding *binding, const kpt_load_args *args, sample_made *made)
{
    const sample_class *product = &sample_tracer_product;
    sample_object *object = sample_make_object(binding, product);
    sample_tracer *t = (sample_tracer *)object;
    kpt_status status;
    if (!object) return sample_refuse(&binding->object, KPT_E_MEMORY, "no memory for the tracer");
    sample_record(object->extra);
    if (wrong("R771")) ((sample_recording *)object->extra)->names[0].first_line++;
    object->state = KPT_STATE_STOPPED;
    t->is_loaded = 1;
    status = take_all(t, args);
    if (status != KPT_OK) {
        sample_free(&binding->heap, object->extra, product->extra_bytes);
        sample_free(&binding->heap, object, product->object_bytes);
        return sample_refuse(&binding->object, status, "load: the chunks make no recording");
    }
    sample_adopt(object, product->kind, binding, product->why);
    binding->loaded++;
    *made = (sample_made){sizeof *made, product->flags, product->ops, object->handle};
    return KPT_OK;
}

static kpt_status load_for(sample_binding *binding, const kpt_load_args *theirs, kpt_tracer *out)
{
    static const sample_layout layout = {sizeof(kpt_load_args), KPT_LOAD_ARGS_V1_SIZE, 0, 0, 0};
    const sample_class *product = &sample_tracer_product;
    kpt_load_args args;
    sample_made made = {0, 0, NULL, 0};
    kpt_status status = sample_check(out, &product->out);
    if (status != KPT_OK)
        return sample_refuse(&binding->object, status, "load: out is NULL, or below its V1 size");
    status = sample_read(&args, &layout, theirs);
    if (status != KPT_OK)
        status =
            sample_refuse(&binding->object, status, "load: args is NULL, or below its V1 size");
    else if (args.flags && !wrong("R773"))
        status =
            sample_refuse(&binding->object, KPT_E_UNSUPPORTED, "load: there are unknown flags");
    else if (!args.next)
        status = sample_refuse(&binding->object, KPT_E_INVALID, "load: there is no function");
    if (status == KPT_OK) status = load_own(binding, &args, &made);
    sample_write(out, &product->out, &made);
    return status;
}

static kpt_status load(kpt_handle plugin, const kpt_load_args *args, kpt_tracer *out)
{
    sample_binding *binding = (sample_binding *)sample_use(plugin, SAMPLE_BOND);
    kpt_status status;
    if (!binding) return KPT_E_HANDLE;
    status = load_for(binding, args, out);
    if (status != KPT_OK) sample_release(&binding->object); /* else the tracer uses it */
    return status;
}

const kpt_loader sample_loader = {sizeof sample_loader, 0, load};
