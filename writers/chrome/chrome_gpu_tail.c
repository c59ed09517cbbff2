/* chrome_gpu_tail.c: the part of chrome_gpu.h that is written at the end of the file. */
#include "writers/chrome/chrome_gpu.h"
#include "writers/chrome/chrome_gpu_put.h"

#define PUT KPTI_PUT

static char *put_properties(char *at, const kpt_gpu_device *d, kpt_str name)
{
    at = kpti_chrome_escape(PUT(at, ",\"name\":\""), name);
    at = kpti_chrome_put_number(at, "\",\"totalGlobalMem\":", d->memory_bytes);
    at = kpti_chrome_put_number(at, ",\"computeMajor\":", d->compute_major);
    at = kpti_chrome_put_number(at, ",\"computeMinor\":", d->compute_minor);
    at = kpti_chrome_put_number(at, ",\"maxThreadsPerBlock\":", d->max_threads_per_block);
    at = kpti_chrome_put_number(
        at, ",\"maxThreadsPerMultiprocessor\":", d->max_threads_per_multiprocessor);
    at = kpti_chrome_put_number(at, ",\"regsPerMultiprocessor\":", d->registers_per_multiprocessor);
    at = kpti_chrome_put_number(at, ",\"warpSize\":", d->warp_size);
    at = kpti_chrome_put_number(
        at, ",\"sharedMemPerMultiprocessor\":", d->shared_bytes_per_multiprocessor);
    at = kpti_chrome_put_number(at, ",\"numSms\":", d->multiprocessors);
    return PUT(at, "}");
}

void kpti_chrome_gpu_put_device(kpti_writer *w, const kpt_gpu_device *device, kpt_str name)
{
    char *at = kpti_chrome_put_number(kpti_chrome_gpu_reserve(w), "\n{\"id\":", device->index);
    kpti_out_wrote(&w->out, put_properties(at, device, name));
}

static void put_devices(kpti_chrome_gpu *gpu, kpti_writer *w)
{
    kpti_chrome_gpu_put_text(w, ",\"deviceProperties\":[");
    for (uint32_t i = 0; i < gpu->device_count; i++) {
        const kpti_chrome_device *d = &gpu->devices[i];
        char *at = kpti_chrome_put_number(kpti_chrome_gpu_reserve(w),
                                          i ? ",\n{\"id\":" : "\n{\"id\":", d->known.index);
        if (w->shares_file) at = kpti_chrome_put_number(at, ",\"process\":", d->pid);
        kpti_out_wrote(&w->out,
                       put_properties(at, &d->known, kpti_gpu_text(&gpu->stacks, d->name)));
    }
    kpti_chrome_gpu_put_text(w, "]");
}

void kpti_chrome_gpu_tail(kpti_chrome_gpu *gpu, kpti_writer *w)
{
    const kpti_gpu_log *stacks = &gpu->stacks;
    char *at;
    put_devices(gpu, w);
    if (!gpu->events && !gpu->counts.dropped && !gpu->counts.lost_kernels) return;
    at = kpti_chrome_put_number(kpti_chrome_gpu_reserve(w), ",\"gpu\":{\"events\":", gpu->events);
    at = kpti_chrome_put_number(at, ",\"events dropped\":", gpu->counts.dropped);
    at = kpti_chrome_put_number(at, ",\"kernels lost\":", gpu->counts.lost_kernels);
    kpti_out_wrote(&w->out, PUT(at, "},\"stackFrames\":{"));
    for (uint32_t i = 1; i <= stacks->node_count; i++) {
        at = kpti_chrome_put_number(kpti_chrome_gpu_reserve(w), i > 1 ? ",\n\"" : "\n\"", i);
        at = kpti_chrome_put_frame(PUT(at, "\":{\"name\":\""), stacks, &stacks->nodes[i]);
        at = PUT(at, "\"");
        if (stacks->nodes[i].caller)
            at = kpti_chrome_put_number(at, ",\"parent\":", stacks->nodes[i].caller);
        kpti_out_wrote(&w->out, PUT(at, "}"));
    }
    kpti_chrome_gpu_put_text(w, "}");
}
