/* gpu_log.h: the log of what GPUs did: events, each with its name and the Python stack that started it,
 * and the devices. Names and frames are there once; an event is packed into some 30 bytes (gpu_codec.h).
 * The host fills one from what the plugin collects; a reader of a .kpt file from its records.
 *
 * A stack is a node of a tree: a frame, and the node of its caller. Numbers of texts and nodes begin at 1;
 * 0 is none. Events are in blocks. A stream frees them once they are written, a flight recorder when there are too
 * many. One thread at a time; callers that add events hold a lock. */
#ifndef KPTI_WRITERS_GPU_GPU_LOG_H
#define KPTI_WRITERS_GPU_GPU_LOG_H

#include "writers/annotations/clock_shift.h"
#include "writers/encode/string_table.h"
#include "writers/gpu/gpu_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A frame of a stack. */
typedef struct kpti_gpu_node {
    uint32_t caller; /* the node around it; less than its own number */
    uint32_t function;
    uint32_t file;
    uint32_t line;
} kpti_gpu_node;

/* What the tracer counted; of a log that was read, what it said. */
typedef struct kpti_gpu_counts {
    uint64_t dropped;
    uint64_t lost_kernels;
} kpti_gpu_counts;

/* Begins as zeroes with heaps: kpti_gpu_log_init. */
typedef struct kpti_gpu_log {
    kpti_heap heap;
    uint64_t most_bytes;   /* of events; 0: any number */
    int is_ring;           /* beyond it the oldest go; else what comes is dropped, and counted */
    kpti_text_table texts; /* which counts from 0 */
    kpti_gpu_node *nodes;  /* by number */
    uint32_t node_capacity;
    uint32_t node_count;
    kpt_gpu_device *devices; /* in the order in which they came; the names are texts */
    uint32_t device_capacity;
    uint32_t device_count;
    kpt_gpu_name *names; /* likewise */
    uint32_t name_capacity;
    uint32_t name_count;
    kpti_u64_map node_numbers;
    struct kpti_gpu_block *first; /* the oldest */
    struct kpti_gpu_block *last;
    uint64_t bytes;   /* of events */
    uint64_t events;  /* that are there */
    uint64_t kernels; /* that were ever added */
    uint64_t changes; /* of devices and names */
    kpti_gpu_counts counts;
    const kpti_clock_shift *shift; /* what events are read with; NULL: as they are */
} kpti_gpu_log;

void kpti_gpu_log_init(kpti_gpu_log *log, const kpti_heap *heap);
void kpti_gpu_log_free(kpti_gpu_log *log);

/* The number of TEXT, of a frame, which are new or not. KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_gpu_log_text(kpti_gpu_log *log, kpt_str text, uint32_t *number);
kpt_status kpti_gpu_log_node(kpti_gpu_log *log, const kpti_gpu_node *node, uint32_t *number);

/* A device or a name of the program's takes the place of what was known of it. */
kpt_status kpti_gpu_log_device(kpti_gpu_log *log, const kpt_gpu_device *device);
kpt_status kpti_gpu_log_name(kpti_gpu_log *log, const kpt_gpu_name *name);

/* Adds an event, whose stack is a node's number. One that has no name gets the one that Kineto has for it. */
kpt_status kpti_gpu_log_add(kpti_gpu_log *log, const kpt_gpu_event *event, uint32_t stack);

/* A block of COUNT events as another log packed them; BYTES live as long as the log does. KPT_E_INVALID
 * where they are none, and then nothing has changed. */
kpt_status kpti_gpu_log_borrow(kpti_gpu_log *log, const unsigned char *bytes, uint64_t size,
                               uint64_t count);

/* Drops all events; texts, stacks and devices stay. */
void kpti_gpu_log_forget(kpti_gpu_log *log);

/* A block of events, and the next; NULL: there is none. For who writes them as they are. */
typedef struct kpti_gpu_block {
    struct kpti_gpu_block *next;
    const unsigned char *bytes;
    uint32_t size;
    uint32_t count;
    uint32_t capacity;     /* behind the block itself; 0: the bytes are somebody else's */
    kpti_gpu_entry before; /* the last one of it: the next is packed as what differs */
} kpti_gpu_block;

/* Reads all events, in the order in which they came. Begins as zeroes with a log. */
typedef struct kpti_gpu_cursor {
    const kpti_gpu_log *log;
    const kpti_gpu_block *block; /* NULL: at the beginning */
    const unsigned char *at;
    uint32_t left;
    kpti_gpu_entry entry;   /* the next is packed as what differs from it */
    kpti_gpu_entry shifted; /* of a log that has a shift */
} kpti_gpu_cursor;

/* The next one, which is the cursor's until the next call; NULL: there is none. */
const kpti_gpu_entry *kpti_gpu_next(kpti_gpu_cursor *cursor);

static inline kpt_str kpti_gpu_text(const kpti_gpu_log *log, uint32_t number)
{
    static const kpt_str none = {"", 0};
    kpti_fragment text;
    if (!number || number > log->texts.texts.count) return none;
    text = log->texts.texts.items[number - 1];
    return (kpt_str){text.text, text.size};
}

static inline const kpti_gpu_node *kpti_gpu_node_of(const kpti_gpu_log *log, uint32_t number)
{
    return number && number <= log->node_count ? &log->nodes[number] : NULL;
}

/* What is known of a device, or the name of a stream, a context or a device; NULL, or empty: nothing. */
const kpt_gpu_device *kpti_gpu_device_of(const kpti_gpu_log *log, uint32_t index);
kpt_str kpti_gpu_name_of(const kpti_gpu_log *log, uint32_t what, uint32_t id);

/* Whether people would not call the file their own: it is of a Python's library, or of a package. */
int kpti_gpu_is_library(kpt_str file);

/* The innermost frame that is neither the library's of a Python nor a package's: the line that people
 * look for. The innermost of all where there is no such; NULL: there is no stack. */
const kpti_gpu_node *kpti_gpu_own_frame(const kpti_gpu_log *log, uint32_t stack);

/* Whether the event occupies the device: a kernel, a copy, a set. */
static inline int kpti_gpu_is_work(uint32_t kind)
{
    return kind >= KPT_GPU_KERNEL && kind <= KPT_GPU_MEMSET;
}

static inline int kpti_gpu_is_call(uint32_t kind)
{
    return kind == KPT_GPU_RUNTIME || kind == KPT_GPU_DRIVER;
}

/* From START_NS to END_NS; 0 where it ends before. Never overflows. */
static inline uint64_t kpti_gpu_ns(int64_t start_ns, int64_t end_ns)
{
    return end_ns > start_ns ? (uint64_t)end_ns - (uint64_t)start_ns : 0;
}

#ifdef __cplusplus
}
#endif
#endif
