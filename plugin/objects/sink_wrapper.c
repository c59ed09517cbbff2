#include "plugin/objects/sink_wrapper.h"

#include "core/base/assert.h"

/* A sink that runs on the calling thread, and the sink that the thread was in when it was called. The structs
 * are on the thread's C stack. No Python runs in a sink, so that stack is not switched meanwhile. */
typedef struct running_sink {
    const kpti_object *object;
    const struct running_sink *outer;
} running_sink;

static __thread const running_sink *innermost;

static kpt_status sealed(void *ctx, const kpt_chunk *chunk)
{
    const kpti_object *object = ctx;
    const running_sink running = {object, innermost};
    kpt_status status;
    innermost = &running;
    status = object->sink.sealed(object->sink.chunk_ctx, chunk);
    kpti_assert(innermost == &running); /* sinks of one thread nest */
    innermost = running.outer;
    return status;
}

kpt_chunk_sink kpti_sink_around(kpti_object *object)
{
    kpt_chunk_sink around = object->sink;
    around.sealed = sealed;
    around.chunk_ctx = object;
    return around;
}

int kpti_sink_is_inside(const kpti_object *object)
{
    const running_sink *running = innermost;
    while (running && running->object != object)
        running = running->outer;
    return running != NULL;
}

void kpti_sink_refuse(kpt_handle handle)
{
    kpti_error error;
    (void)kpti_fail(&error, KPT_E_BUSY,
                    "the calling thread is inside a chunk sink of this tracer: call again after "
                    "the sink has returned");
    (void)kpti_handle_fail(handle, KPT_E_BUSY, &error);
}
