/* sample_make.c: how objects of all kinds are made and destroyed. A made object is one block, or
 * two, of its host's memory, and uses the binding until it is destroyed. */
#include <stdatomic.h>
#include <time.h>

#include "tests/plugins/sample.h"

/* Space for the args of any product. */
typedef union any_args {
    kpt_tracer_args tracer;
    kpt_memory_args memory;
    kpt_observer_args observer;
    kpt_tracebacks_args tracebacks;
    kpt_gpu_args gpu;
} any_args;

_Static_assert(sizeof(sample_made) == sizeof(kpt_tracer) &&
                   sizeof(sample_made) == sizeof(kpt_memory_tracer) &&
                   sizeof(sample_made) == sizeof(kpt_observer) &&
                   sizeof(sample_made) == sizeof(kpt_tracebacks) &&
                   sizeof(sample_made) == sizeof(kpt_gpu_tracer),
               "sample_made stands for all of them");

void *sample_make_ctx(const sample_binding *binding)
{
    return (void *)(uintptr_t)binding->object.handle;
}

static void free_object(const sample_binding *binding, const sample_class *product,
                        sample_object *object)
{
    sample_free(&binding->heap, object->extra, product->extra_bytes);
    sample_free(&binding->heap, object, product->object_bytes);
}

sample_object *sample_make_object(sample_binding *binding, const sample_class *product)
{
    sample_object *object = sample_alloc(&binding->heap, product->object_bytes);
    if (!object || !product->extra_bytes) return object;
    object->extra = sample_alloc(&binding->heap, product->extra_bytes);
    if (object->extra) return object;
    if (!wrong("R220")) free_object(binding, product, object);
    return NULL;
}

static kpt_status make_own(sample_binding *binding, const sample_class *product, const void *args,
                           sample_made *made)
{
    sample_object *object;
    int is_tracer = product->kind == KPT_FACTORY_TRACER;
    if (wrong("R221") && is_tracer && sample_count_mine(binding, product->kind) == 3)
        return sample_refuse(&binding->object, KPT_E_LIMIT, "there are three already");
    object = sample_make_object(binding, product);
    if (!object) return sample_refuse(&binding->object, KPT_E_MEMORY, "no memory for the object");
    object->binding = binding;
    product->begin(object, args);
    sample_adopt(object, product->kind, binding, product->why);
    made->flags = product->flags;
    if (wrong("R406") && is_tracer) made->flags |= KPT_OBJECT_NOOP;
    made->ops = product->ops;
    made->self = wrong("R201") && is_tracer ? 0 : object->handle;
    return KPT_OK;
}

/* *OWN receives whether the object was made here, and so uses the binding. */
static kpt_status make_for(sample_binding *binding, const sample_class *product, const void *theirs,
                           void *out, int *own)
{
    any_args args;
    sample_made made = {0, 0, NULL, 0};
    int is_tracer = product->kind == KPT_FACTORY_TRACER;
    kpt_status status = sample_check(out, &product->out);
    if (!out && is_tracer && wrong("R204")) return KPT_OK;
    if (status != KPT_OK)
        return sample_refuse(&binding->object, status, "out is NULL, or below its V1 size");
    status = sample_read(&args, &product->args, theirs);
    if (!theirs && is_tracer && wrong("R203")) status = KPT_OK;
    if (status == KPT_OK)
        status = product->check(binding, &args);
    else
        status = sample_refuse(&binding->object, status, "args is NULL, or below its V1 size");
    if (status == KPT_OK) {
        status = sample_registry_ask(binding, product, &args, &made);
        /* An added factory that was called has filled MADE; the R752 variant returns its refusal. */
        if (status == KPT_DECLINED && !(wrong("R752") && made.struct_size)) {
            status = make_own(binding, product, &args, &made);
            *own = status == KPT_OK;
        }
    }
    if (status != KPT_OK) {
        if (wrong("R210")) return status;
        made = (sample_made){0, 0, NULL, 0};
    }
    sample_write(out, &product->out, &made);
    return status;
}

/* For R804: a plugin that can't make two objects at once. */
static atomic_int making;

static kpt_status make_alone(sample_binding *binding, const sample_class *product, const void *args,
                             void *out, int *own)
{
    static const struct timespec a_moment = {0, 1000000};
    kpt_status status;
    if (atomic_fetch_add(&making, 1) == 0) {
        status = make_for(binding, product, args, out, own);
        (void)nanosleep(&a_moment, NULL);
    } else {
        status = sample_refuse(&binding->object, KPT_E_BUSY, "another make is on its way");
    }
    (void)atomic_fetch_sub(&making, 1);
    return status;
}

kpt_status sample_make(const sample_class *product, void *make_ctx, const void *args, void *out)
{
    sample_binding *binding =
        (sample_binding *)sample_use((kpt_handle)(uintptr_t)make_ctx, SAMPLE_BOND);
    int own = 0;
    kpt_status status;
    if (!binding) return wrong("R125") ? KPT_E_INVALID : KPT_E_HANDLE;
    if (wrong("R127")) (void)*(const volatile uint32_t *)&binding->theirs->struct_size;
    status = (wrong("R804") ? make_alone : make_for)(binding, product, args, out, &own);
    if (!own) sample_release(&binding->object);
    return status;
}

kpt_status sample_destroy(const sample_class *product, kpt_handle self)
{
    sample_object *object;
    sample_binding *binding;
    kpt_status status = sample_enter(self, product->kind, &object);
    if (status == KPT_E_BUSY && wrong("R547") && sample_is_handing) return KPT_OK;
    if (status != KPT_OK) return status;
    if (wrong("R310") && product->kind == KPT_FACTORY_TRACER &&
        object->state == KPT_STATE_RUNNING) {
        status = sample_refuse(object, KPT_E_STATE, "the tracer is running");
        return sample_leave(object, status);
    }
    status = sample_end(object);
    if (status != KPT_OK) return status;
    binding = object->binding;
    if (wrong("R314") && product->kind == KPT_FACTORY_TRACER && !binding->kept) {
        binding->kept = object->extra;
        object->extra = NULL;
    }
    if (product->kind == KPT_FACTORY_TRACER && ((sample_tracer *)object)->is_loaded)
        binding->loaded--;
    free_object(binding, product, object);
    sample_release(&binding->object);
    return KPT_OK;
}
