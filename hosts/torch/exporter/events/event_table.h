/* event_table.h: the events of a native profile, as torch.profiler lists them: operators, annotations, Python calls and
 * [memory] instants by start time, which is also their order in the file, and behind them what the log of GPUs has.
 *
 * Operators and annotations are numbered together from 1 by their begin, and so are Python calls. Names, stacks and
 * inputs are stored once; their numbers begin at 1, and 0 means none. A table does not change after it was made. No
 * Python, no GIL. */
#ifndef KPTI_TORCH_EVENT_TABLE_H
#define KPTI_TORCH_EVENT_TABLE_H

#include "core/base/u64_map.h"
#include "hosts/torch/exporter/events/event_names.h"
#include "hosts/torch/session/exporter_view.h"
#include "writers/gpu/gpu_log.h"

typedef enum kpti_event_kind {
    KPTI_EVENT_OPERATOR,
    KPTI_EVENT_ANNOTATION,
    KPTI_EVENT_PYTHON,
    KPTI_EVENT_COLLECTION,
    KPTI_EVENT_MEMORY,
    KPTI_EVENT_GPU_CALL, /* of CUDA, on a thread */
    KPTI_EVENT_GPU_WORK, /* on a device; also a wait */
    KPTI_EVENT_GPU_ANNOTATION
} kpti_event_kind;

enum { KPTI_EVENT_ASYNC = 1 << 0, KPTI_EVENT_FLOW_START = 1 << 1 };

typedef struct kpti_event {
    int64_t start_ns; /* Unix time */
    int64_t end_ns;
    uint64_t sequence_plus_1; /* 0: none */
    uint64_t forward_thread;  /* torch's number, or 0 */
    uint32_t name;
    uint32_t thread; /* an index of threads */
    uint32_t stack;  /* of its Python callers */
    uint32_t inputs;
    uint32_t id;     /* of an operator, an annotation or a Python call */
    uint32_t parent; /* the id of the Python call around a Python call, or 0 */
    uint32_t more;   /* the module's number + 1 of a call; the index of a [memory] or GPU record */
    uint32_t flow;   /* of a forward operator and its node of autograd */
    uint8_t kind;    /* kpti_event_kind */
    uint8_t scope;   /* KPT_SCOPE_* */
    uint8_t flags;   /* KPTI_EVENT_* */
} kpti_event;

/* A thread as torch numbers it. */
typedef struct kpti_event_thread {
    uint64_t number;
    uint64_t os_tid;
    uint32_t first; /* the first thread with the same number */
    uint32_t has_calls;
} kpti_event_thread;

/* A Python call and its callers. */
typedef struct kpti_event_stack {
    uint32_t caller;
    uint32_t name;
} kpti_event_stack;

/* What an event of the GPU has more. */
typedef struct kpti_event_gpu {
    uint64_t correlation; /* CUPTI's; of an annotation, its id */
    uint32_t linked;      /* the id of the operator around its call, or 0 */
    uint32_t kind;        /* KPT_GPU_*; 0 for an annotation */
    uint32_t device;
    uint32_t stream;
    uint64_t bytes;
} kpti_event_gpu;

typedef struct kpti_event_table {
    kpti_heap heap;
    kpti_event *events;
    uint32_t capacity;
    uint32_t count;
    uint32_t cpu_count; /* those that are not from the log of GPUs */
    kpti_event_thread *threads;
    uint32_t thread_capacity;
    uint32_t thread_count;
    kpti_event_stack *stacks;
    uint32_t stack_capacity;
    uint32_t stack_count;
    kpti_u64_map stack_of;
    kpt_str *inputs; /* copies */
    uint32_t input_capacity;
    uint32_t input_count;
    kpti_event_names names;
    kpti_torch_memory *memory; /* a copy, sorted by time */
    uint32_t memory_capacity;
    uint32_t memory_count;
    kpti_event_gpu *gpu;
    uint32_t gpu_capacity;
    uint32_t gpu_count;
} kpti_event_table;

/* Fills TABLE, which is zeroed, from RECORDING, and from GPU unless it is NULL. Returns KPT_OK, KPT_E_MEMORY,
 * KPT_E_LIMIT, or the status of the tracer. The caller frees TABLE in any case. */
kpt_status kpti_event_table_make(kpti_event_table *table, const kpti_torch_recording *recording,
                                 const kpti_gpu_log *gpu);
void kpti_event_table_free(kpti_event_table *table);

/* Appends a zeroed event and returns it, or NULL if there is no memory. */
kpti_event *kpti_event_table_add(kpti_event_table *table);

/* Merges the reports of memory, which are sorted by time, with the events. Before links and GPU events are added. */
kpt_status kpti_event_table_add_memory(kpti_event_table *table, const kpti_torch_memory *memory,
                                       uint64_t reports);

/* Numbers the links between forward operators and nodes of autograd, as torch does. */
kpt_status kpti_event_table_link(kpti_event_table *table);

/* Appends the events of LOG. */
kpt_status kpti_event_table_add_gpu(kpti_event_table *table, const kpti_gpu_log *log);

static inline int kpti_event_is_on_device(const kpti_event *event)
{
    return event->kind >= KPTI_EVENT_GPU_WORK;
}

#endif
