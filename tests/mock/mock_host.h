/* mock_host.h: a host for tests, in C, that only knows the ABI. It keeps what the plugin registers,
 * writes down every call that it gets, has a clock that moves only when it is read, and an allocator that
 * fails at the Nth call and knows what is still out. Calls may come from any thread. */
#ifndef MOCK_HOST_H
#define MOCK_HOST_H

#include <pthread.h>

#include "abi/kpt.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOCK_MOST_CALLS = 512, MOCK_CALL_TEXT = 160, MOCK_TICKS_STEP = 1000 };

typedef struct mock_host {
    kpt_host table; /* hand this to the entry; change what the test is about before */

    /* What the plugin registered: the last of each, and how often. */
    kpt_tracer_make_fn make_tracer;
    void *tracer_ctx;
    kpt_memory_make_fn make_memory;
    void *memory_ctx;
    kpt_observer_make_fn make_observer;
    void *observer_ctx;
    uint32_t tracers_registered;
    kpt_status register_answer; /* what register_* answers */

    uint64_t now_ticks; /* the fake clock: what it showed last */

    uint64_t alloc_calls;
    uint64_t fail_alloc_at; /* 1 = the first; 0 = never */
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t bad_frees; /* of memory that is not ours, or with another size */

    char calls[MOCK_MOST_CALLS][MOCK_CALL_TEXT]; /* "name: what" */
    uint32_t call_count;                         /* may exceed the log's length */
    pthread_mutex_t lock;
} mock_host;

void mock_host_init(mock_host *host, const char *name);
/* How many logged calls begin with PREFIX. */
uint32_t mock_host_count(mock_host *host, const char *prefix);

/* Opens a plugin as a host does. NULL where it can't be opened, or has no entry; WHY then says it. */
kpt_plugin_entry_fn mock_open_plugin(const char *path, const char **why);

/* COUNT bytes that end exactly where a page begins that can't be touched. Never freed. */
void *mock_guarded(size_t count);

#ifdef __cplusplus
}
#endif
#endif
