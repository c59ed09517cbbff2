/* v1_plugin.h: what the files of the V1 plugin share: its table of objects, and the size rule. */
#ifndef V1_PLUGIN_H
#define V1_PLUGIN_H

#include <stdio.h>
#include <stdlib.h>

#include "kpt.h"

enum { FREE = 0, BOND = 1, TRACER = 2, MEMORY = 3, OBSERVER = 4 };

typedef struct object {
    int kind;
    uint32_t generation;
    kpt_host host;  /* whole */
    uint32_t alive; /* of a bond: its objects */
    kpt_handle bond;
    uint32_t state; /* of an observer: 1 closed, 2 open, 3 recording */
    uint64_t ops;
    uint64_t host_value;
    uint64_t watched;
    uint64_t watch_answer;
    kpt_chunk_sink chunk_sink;
    uint64_t chunks;
    void *lent; /* a block of the host's allocator, to have used it */
    char path[256];
    char error[120];
} object;

/* The size rule, from the callee's side. */
kpt_status read_in(void *local, uint32_t size, const void *theirs, uint32_t v1_size);
kpt_status check_out(const void *theirs, uint32_t v1_size);
void write_out(void *theirs, const void *local, uint32_t size);

object *find(kpt_handle handle, int kind);
kpt_status fail(object *o, kpt_status status, const char *text);
kpt_status last_error(kpt_handle self, char *buf, uint64_t size, uint64_t *needed);

/* An object of a bond, with a block of its host's memory; and its end. */
kpt_status make(void *make_ctx, int kind, const void *ops, void *out, object **made);
kpt_status destroy(kpt_handle self, int kind);

kpt_status make_tracer(void *make_ctx, const kpt_tracer_args *args, kpt_tracer *out);
kpt_status make_memory(void *make_ctx, const kpt_memory_args *args, kpt_memory_tracer *out);
kpt_status make_observer(void *make_ctx, const kpt_observer_args *args, kpt_observer *out);

#endif
