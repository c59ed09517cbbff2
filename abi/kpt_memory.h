/* kpt_memory.h: the memory tracer, an extension. It records allocations and frees with their time
 * and Python stack. A host gets it through its register_memory_tracer, or through a tracer's
 * get_extension(KPT_EXT_MEMORY). */
#ifndef KPT_MEMORY_H
#define KPT_MEMORY_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_MEMORY "kpt.memory.v1" /* fills a kpt_memory_tracer */

typedef struct kpt_memory_args {
    uint32_t struct_size;
    uint32_t flags;        /* none defined: must be 0 */
    uint64_t sample_bytes; /* mean distance between samples; 0 = every allocation */
    uint64_t max_entries;  /* keep the last max_entries; 0 = all */
    uint32_t max_frames;   /* per stack; 0 = all */
    uint32_t domains;      /* none defined: must be 0, which selects all domains */
} kpt_memory_args;
#define KPT_MEMORY_ARGS_V1_SIZE KPT_FIELD_END(kpt_memory_args, domains)

/* The action of a report. */
enum { KPT_REPORT_ALLOC = 1, KPT_REPORT_FREE = 2 };

/* A block of memory that the host has allocated or is about to free. Device and address identify
 * the block; the other fields of a FREE are ignored. */
typedef struct kpt_memory_report {
    uint32_t struct_size;
    uint32_t action; /* KPT_REPORT_* */
    uint64_t address;
    uint64_t size; /* in bytes */
    /* As torch and Kineto number them: 0 is host memory, 1 CUDA memory, and so on. */
    int32_t device_type;
    int32_t device_index; /* -1 = the only device of its type */
    uint64_t stream;      /* that it is allocated for; 0 = the default stream, or none */
    kpt_str category;     /* its purpose, one of a few words; empty = unknown */
    kpt_str owner; /* the part of the program that uses it, such as a module's path; may be empty */
} kpt_memory_report;
#define KPT_MEMORY_REPORT_V1_SIZE KPT_FIELD_END(kpt_memory_report, owner)

/* Implemented by the host: receives a record of what a memory tracer recorded. The host stores records in the order in
 * which it received them (docs/kpt.md has their content), and nothing in them depends on the process.
 * thread: a thread of the tracer, the thread that calls stream, stop or destroy, or one that allocates; one at a time
 * GIL: as that thread has it. The function must not acquire it, run Python code, or wait for anything that a thread of the
 *     program may hold while it allocates
 * ownership: the bytes are borrowed during the call
 * errors: after any status other than KPT_OK the tracer delivers nothing more
 * since: 1.2 */
typedef kpt_status (*kpt_memory_sink_fn)(void *sink_ctx, const void *record, uint64_t size);

typedef struct kpt_memory_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Starts recording. Has no effect if the tracer is recording already.
     * thread: any
     * GIL: acquired if Python is loaded and the caller does not hold it
     * ownership: nothing is transferred
     * errors: KPT_E_MEMORY
     * since: 1.0 */
    kpt_status (*start)(kpt_handle self);

    /* Ends recording and keeps the recording. Has no effect if recording has ended.
     * thread: any
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: none
     * since: 1.0 */
    kpt_status (*stop)(kpt_handle self);

    /* Writes the recording to PATH, in the format that the suffix of PATH selects. Legal while
     * recording and after. A no-op creates no file. A failed export leaves no file.
     * thread: any
     * GIL: not needed
     * ownership: path is borrowed during the call
     * errors: KPT_E_INVALID for a path that is empty or contains a NUL, KPT_E_IO, KPT_E_UNSUPPORTED
     * since: 1.0 */
    kpt_status (*export_memory_history)(kpt_handle self, kpt_str path);

    /* Returns the reason why the last call failed. On a no-op it first returns the reason why the
     * tracer is a no-op.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* Stops the tracer if it is recording, and frees it.
     * thread: any
     * GIL: not needed
     * ownership: the handle becomes invalid
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.0 */
    kpt_status (*destroy)(kpt_handle self);

    /* Reports a block of the host's own memory. The tracer records it with the calling thread's
     * Python stack, as it does for Python's blocks. Report an allocation after it succeeds and a
     * free before it happens; otherwise another thread could reuse the address and be reported
     * first. Legal in any state; recorded while SELF records.
     * thread: any, also several at once; no lock is acquired for a kind of block that was reported
     *     before
     * GIL: not needed, not acquired
     * ownership: report and its strings are borrowed during the call; SELF may be destroyed only
     *     when no thread is inside report
     * errors: KPT_E_HANDLE, KPT_E_SIZE, KPT_E_INVALID for a string with a size but without bytes,
     *     KPT_E_UNSUPPORTED for an unknown action; last_error has no text
     * since: 1.1 */
    kpt_status (*report)(kpt_handle self, const kpt_memory_report *report);

    /* Delivers everything that was recorded so far and not delivered. The first call, before the
     * first start, chooses the SINK: from then on the tracer delivers while it records, and keeps
     * nothing in memory, so that export_memory_history has nothing to write. stop delivers the rest;
     * after it nothing is delivered until start or stream is called. Later calls pass the same
     * sink. A no-op delivers nothing. The child of a fork may choose a sink again.
     * thread: any
     * GIL: not needed
     * ownership: sink and sink_ctx are borrowed until destroy has returned, or a fork's child begins
     * errors: KPT_E_INVALID without a sink, KPT_E_STATE for a first call after start,
     *     KPT_E_UNSUPPORTED with max_entries, KPT_E_MEMORY, the status that the sink returned
     * since: 1.2 */
    kpt_status (*stream)(kpt_handle self, kpt_memory_sink_fn sink, void *sink_ctx);
} kpt_memory_ops;
#define KPT_MEMORY_OPS_V1_SIZE KPT_FIELD_END(kpt_memory_ops, destroy)

typedef struct kpt_memory_tracer {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_memory_ops *ops;
    kpt_handle self;
} kpt_memory_tracer;
#define KPT_MEMORY_TRACER_V1_SIZE KPT_FIELD_END(kpt_memory_tracer, self)

/* Makes a memory tracer that does not record yet. OUT is filled as by kpt_tracer_make_fn.
 * thread: any, also several at once
 * GIL: not needed
 * ownership: args is borrowed during the call; the object belongs to the caller until destroy
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *     KPT_E_HANDLE after detach
 * since: 1.0 */
typedef kpt_status (*kpt_memory_make_fn)(void *make_ctx, const kpt_memory_args *args,
                                         kpt_memory_tracer *out);

#ifdef __cplusplus
}
#endif
#endif
