/* playing.h: a tracer of GPUs on the stand-ins. */
#ifndef PLAYING_H
#define PLAYING_H

#include "tests/fixtures/cupti/stand_in.h"
#include "tests/native/gpu/tracing_gpu.h"

class Playing : public TracingGpu
{
  protected:
    Playing();
    ~Playing() override;
    /* Makes and starts. */
    void begin();
    /* Stops and collects. */
    void finish();
    /* A kernel, through the runtime; its correlation. */
    uint32_t launch(const char *kernel = "k", uint32_t stream = 7);

    const play_cupti *cupti;
    const play_cuda *cuda;
};

/* A folder's stand-in, opened. */
const void *open_stand_in(const char *path, const char *table);

#endif
