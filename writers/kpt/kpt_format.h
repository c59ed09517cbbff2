/* kpt_format.h: the .kpt file format (docs/kpt.md): a head, then records in the order in which they were made, each with its
 * own checksum. A reader accepts records up to the first that is incomplete or damaged. So a file can be read
 * while it is written, and after a crash up to the last record.
 *
 *   head     64 bytes
 *   record   24 bytes of head, then its bytes, then zeroes up to a multiple of 8
 *
 * Chunk records hold the chunks that a tracer's sink received; only the plugin can decode them. All numbers are
 * in the byte order of the machine, which the head records. */
#ifndef KPTI_WRITERS_KPT_KPT_FORMAT_H
#define KPTI_WRITERS_KPT_KPT_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi/kpt_chunk.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPTI_KPT_MAGIC "kpytrace"
enum { KPTI_KPT_VERSION = 1, KPTI_KPT_ORDER = 0x01020304, KPTI_KPT_GUARD = 0x7274706b };

enum {
    KPTI_KPT_CHUNK = 1, /* a kpti_kpt_chunk, then the chunk's bytes */
    KPTI_KPT_INFO = 2,  /* lines "key=value" about the traced program; the last record is valid */
    /* kpti_kpt_note, name, arguments, zeroes up to 8: the user's notes, in order */
    KPTI_KPT_NOTES = 3,
    KPTI_KPT_END = 4, /* last record of a complete recording: a kpti_kpt_end, or empty */
    KPTI_KPT_GPU = 5, /* a kpti_kpt_gpu, then the items that it describes. Readers of 1.0 skip it */
    /* a record of writers/memory/memory_records.h: allocations. Readers of 1.0 skip it */
    KPTI_KPT_MEMORY = 6,
    KPTI_KPT_LAST_KIND = KPTI_KPT_MEMORY
};

typedef struct kpti_kpt_head {
    char magic[8];
    uint32_t version;
    uint32_t order;
    uint64_t pid;
    int64_t base_ns; /* the full second in which the recording began, in Unix time */
    uint64_t spare[3];
    uint64_t sum; /* checksum of all fields above */
} kpti_kpt_head;

typedef struct kpti_kpt_record {
    uint32_t guard;
    uint32_t kind;
    uint64_t size; /* bytes after this head, without padding */
    uint64_t sum;  /* checksum of the fields above and of the bytes */
} kpti_kpt_record;

typedef struct kpti_kpt_chunk {
    uint32_t format;
    uint32_t thread;
    uint32_t sequence;
    uint32_t run;
    uint64_t os_tid;
    uint64_t first_ticks;
    uint64_t last_ticks;
    uint64_t dropped_before;
} kpti_kpt_chunk;

typedef struct kpti_kpt_end {
    uint64_t
        lost_bytes; /* bytes of chunks and of allocations that could not be written to the file */
} kpti_kpt_end;

typedef struct kpti_kpt_note {
    uint32_t number;
    uint32_t what;
    uint32_t partner;
    uint32_t name_size;
    uint32_t args_size;
    uint32_t spare;
    uint64_t flow;
    int64_t ns;
    uint64_t os_tid;
    double value;
} kpti_kpt_note;

/* The content of a GPU record. Texts and stack nodes are numbered from 1, and are written before the records
 * that refer to them. */
enum {
    KPTI_KPT_GPU_TEXTS = 1,   /* for each: its size in 4 bytes, then its bytes */
    KPTI_KPT_GPU_NODES = 2,   /* kpti_gpu_node, as in gpu_log.h */
    KPTI_KPT_GPU_DEVICES = 3, /* kpti_kpt_gpu_device */
    KPTI_KPT_GPU_NAMES = 4,   /* kpti_kpt_gpu_name */
    /* packed by gpu_codec.h; the first does not depend on earlier events */
    KPTI_KPT_GPU_EVENTS = 5,
    KPTI_KPT_GPU_COUNTS = 6 /* kpti_gpu_counts: the last record is valid */
};

typedef struct kpti_kpt_gpu {
    uint32_t what;  /* KPTI_KPT_GPU_* */
    uint32_t count; /* number of items */
    uint32_t first; /* number of the first text or node */
    uint32_t spare;
} kpti_kpt_gpu;

typedef struct kpti_kpt_gpu_device {
    uint32_t index;
    uint32_t name; /* number of a text */
    uint64_t memory_bytes;
    uint32_t multiprocessors;
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t warp_size;
    uint32_t max_threads_per_block;
    uint32_t max_threads_per_multiprocessor;
    uint32_t registers_per_multiprocessor;
    uint32_t shared_bytes_per_multiprocessor;
    uint32_t clock_khz;
    uint32_t spare;
} kpti_kpt_gpu_device;

typedef struct kpti_kpt_gpu_name {
    uint32_t what;
    uint32_t id;
    uint32_t name; /* number of a text */
    uint32_t spare;
} kpti_kpt_gpu_name;

static inline size_t kpti_kpt_padding(uint64_t size)
{
    return (size_t)(-size & 7);
}

/* A checksum over several parts. The size of each part except the last is a multiple of 8. It takes one
 * multiplication per eight bytes, which keeps up with memory. */
uint64_t kpti_kpt_sum(uint64_t sum, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
