/* gpu_log.h: the log of GPU activities: events, each with its name and the Python stack that started it, and
 * the devices. Names and frames are stored once. An event is packed into about 30 bytes (gpu_codec.h). The host
 * fills a log with the events that the plugin collects, and a reader of a .kpt file fills one from its records.
 *
 * A stack is a node of a tree: a frame, and the node of its caller. Numbers of texts and nodes begin at 1; 0
 * means none. Events are in blocks. A stream frees them after writing them, and a flight recorder when there
 * are too many. One thread at a time; callers that add events hold a lock. */
#ifndef KPTI_WRITERS_GPU_GPU_LOG_H
#define KPTI_WRITERS_GPU_GPU_LOG_H

#include "core/base/assert.h"
#include "writers/annotations/clock_shift.h"
#include "writers/encode/string_table.h"
#include "writers/gpu/gpu_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Modules of the package pass a log to each other in a capsule of this name, which keeps it alive. */
#define KPTI_GPU_LOG_CAPSULE "kpytrace.gpu_log"

/* A frame of a stack. */
typedef struct kpti_gpu_node {
    uint32_t caller; /* node of its caller; smaller than its own number */
    uint32_t function;
    uint32_t file;
    uint32_t line;
} kpti_gpu_node;

/* The tracer's counts; in a log that was read, the counts of the file. */
typedef struct kpti_gpu_counts {
    uint64_t dropped;
    uint64_t lost_kernels;
} kpti_gpu_counts;

/* Initialised by kpti_gpu_log_init. */
typedef struct kpti_gpu_log {
    kpti_heap heap;
    uint64_t most_bytes; /* limit for bytes of events; 0: no limit */
    /* over the limit, drop the oldest events; else drop and count new events */
    int is_ring;
    kpti_text_table texts; /* numbered from 0 */
    kpti_gpu_node *nodes;  /* by number */
    uint32_t node_capacity;
    uint32_t node_count;
    kpt_gpu_device *devices; /* in the order of arrival; the names are texts */
    uint32_t device_capacity;
    uint32_t device_count;
    kpt_gpu_name *names; /* in the order of arrival; the names are texts */
    uint32_t name_capacity;
    uint32_t name_count;
    kpti_u64_map node_numbers;
    struct kpti_gpu_block *first; /* the oldest block */
    struct kpti_gpu_block *last;
    uint64_t bytes;   /* of events */
    uint64_t events;  /* events stored */
    uint64_t kernels; /* all kernels ever added */
    uint64_t changes; /* changes of devices and names */
    kpti_gpu_counts counts;
    const kpti_clock_shift *shift; /* clock shift for reading events; may be NULL */
} kpti_gpu_log;

void kpti_gpu_log_init(kpti_gpu_log *log, const kpti_heap *heap);
void kpti_gpu_log_free(kpti_gpu_log *log);

/* Return the number of TEXT, or of a frame, added if it is new. Return KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_gpu_log_text(kpti_gpu_log *log, kpt_str text, uint32_t *number);
kpt_status kpti_gpu_log_node(kpti_gpu_log *log, const kpti_gpu_node *node, uint32_t *number);

/* Add a device, or a name that the program assigned, and replace the earlier one. */
kpt_status kpti_gpu_log_device(kpti_gpu_log *log, const kpt_gpu_device *device);
kpt_status kpti_gpu_log_name(kpti_gpu_log *log, const kpt_gpu_name *name);

/* Adds an event; STACK is the number of a node. An event without a name is stored with the name that Kineto
 * uses. */
kpt_status kpti_gpu_log_add(kpti_gpu_log *log, const kpt_gpu_event *event, uint32_t stack);

/* Adds a block of COUNT events that another log packed. BYTES must live as long as the log. Returns
 * KPT_E_INVALID, and changes nothing, if they are not valid. */
kpt_status kpti_gpu_log_borrow(kpti_gpu_log *log, const unsigned char *bytes, uint64_t size,
                               uint64_t count);

/* Drops all events. Texts, stacks and devices stay. */
void kpti_gpu_log_forget(kpti_gpu_log *log);

/* A block of events, for callers that write the packed bytes. */
typedef struct kpti_gpu_block {
    struct kpti_gpu_block *next;
    const unsigned char *bytes;
    uint32_t size;
    uint32_t count;
    uint32_t capacity;     /* bytes after the block itself; 0: the bytes are borrowed */
    kpti_gpu_entry before; /* its last event, from which the next one is packed as a difference */
} kpti_gpu_block;

static inline int kpti_gpu_block_is_valid(const kpti_gpu_block *b)
{
    return (!b->capacity || b->size <= b->capacity) && b->count <= b->size;
}

/* Whether the counts fit to the list of blocks, as far as its ends show. */
static inline int kpti_gpu_log_is_valid(const kpti_gpu_log *log)
{
    return !log->first == !log->last && (!log->last || !log->last->next) &&
           (log->first || !(log->bytes | log->events)) && log->events <= log->bytes &&
           log->node_count <= log->node_capacity && log->device_count <= log->device_capacity &&
           log->name_count <= log->name_capacity;
}

/* Reads all events in the order of arrival. Zeroed at first, except for log. */
typedef struct kpti_gpu_cursor {
    const kpti_gpu_log *log;
    const kpti_gpu_block *block; /* NULL: at the beginning */
    const unsigned char *at;
    uint32_t left;
    kpti_gpu_entry entry;   /* the last event, from which the next one is unpacked */
    kpti_gpu_entry shifted; /* used if the log has a shift */
} kpti_gpu_cursor;

/* Returns the next event, valid until the next call, or NULL at the end. */
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

/* Return a device, or NULL, and the name of a stream, context or device, or an empty string. */
const kpt_gpu_device *kpti_gpu_device_of(const kpti_gpu_log *log, uint32_t index);
kpt_str kpti_gpu_name_of(const kpti_gpu_log *log, uint32_t what, uint32_t id);

/* Returns the innermost frame that is neither in Python's library nor in an installed package, which is the
 * line that users look for. Returns the innermost of all frames if there is no such frame, or NULL if there is
 * no stack. */
const kpti_gpu_node *kpti_gpu_own_frame(const kpti_gpu_log *log, uint32_t stack);

/* Returns whether the event occupies the device: a kernel, a copy or a set. */
static inline int kpti_gpu_is_work(uint32_t kind)
{
    return kind >= KPT_GPU_KERNEL && kind <= KPT_GPU_MEMSET;
}

static inline int kpti_gpu_is_call(uint32_t kind)
{
    return kind == KPT_GPU_RUNTIME || kind == KPT_GPU_DRIVER;
}

/* Returns the time from START_NS to END_NS, or 0 if END_NS is earlier. Never overflows. */
static inline uint64_t kpti_gpu_ns(int64_t start_ns, int64_t end_ns)
{
    return end_ns > start_ns ? (uint64_t)end_ns - (uint64_t)start_ns : 0;
}

#ifdef __cplusplus
}
#endif
#endif
