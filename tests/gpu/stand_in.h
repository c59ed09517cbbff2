/* stand_in.h: how tests play on the stand-ins of CUPTI and of the CUDA driver. Each function is exported by
 * its library, and found with dlsym. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A call of CUDA: which, and what it starts. */
typedef struct play_call {
    const char *runtime; /* its name, or NULL: the driver's alone */
    const char *driver;  /* likewise */
    const char *kernel;  /* that it starts; NULL: none */
    uint32_t stream;
    uint32_t result;      /* that it returns; not 0: nothing is started */
    uint32_t copy_kind;   /* with copy_bytes */
    uint64_t copy_bytes;  /* of a copy that it starts */
    uint64_t set_bytes;   /* of a setting of memory */
    uint32_t sync_type;   /* of a wait */
    uint32_t graph;       /* of the kernel */
    uint32_t no_kernel;   /* the record never comes: another tool took it */
    uint32_t own_numbers; /* the driver's part has a correlation of its own */
    void *context;
} play_call;

/* libcupti.so: */
typedef struct play_cupti {
    void (*reset)(void);
    uint32_t (*call)(const play_call *call); /* its correlation */
    uint32_t (*range_begin)(const char *name);
    void (*range_end)(uint32_t id);
    void (*mark)(const char *name);
    void (*name)(uint32_t object_kind, uint32_t id, const char *name);
    void (*overhead)(uint32_t kind);
    void (*external)(uint64_t id); /* on top from now on; 0: none */
    void (*drop)(size_t records);  /* CUPTI could not keep so many */
    void (*other_tool)(int has_it);
    void (*fail)(const char *function, int result); /* each call of it; 0: none */
    void (*destroy_context)(void *context);
    uint64_t (*enabled_kinds)(void);
    int (*subscribed)(void);
    int (*buffers_out)(void);
    /* What CALL starts is finished only now, long after the call with that correlation. */
    void (*work)(const play_call *call, uint32_t correlation);
} play_cupti;
#define PLAY_CUPTI "play_cupti_table"

/* libcuda.so: */
typedef struct play_cuda {
    void (*reset)(int initialised, int devices);
    int (*init)(void); /* as cuInit; what InitializeInjection answered, -1: it was not called */
    int (*waits)(void);
} play_cuda;
#define PLAY_CUDA "play_cuda_table"

#ifdef __cplusplus
}
#endif
#endif
