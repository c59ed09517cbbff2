/* mock_host.h: a host for tests, in C, that uses only the ABI. It stores the plugin's registrations, logs
 * every call that it receives, has a clock that advances only when it is read, and an allocator that fails
 * at the Nth call and counts live blocks. Any thread may call it. */
#ifndef MOCK_HOST_H
#define MOCK_HOST_H

#include <pthread.h>

#include "abi/kpt.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOCK_MAX_CALLS = 512, MOCK_CALL_TEXT = 160, MOCK_TICKS_STEP = 1000 };

typedef struct mock_host {
    kpt_host table; /* pass this to the entry; change it before for the test */

    /* The plugin's registrations: the last of each, and their number. */
    kpt_tracer_make_fn make_tracer;
    void *tracer_ctx;
    kpt_memory_make_fn make_memory;
    void *memory_ctx;
    kpt_observer_make_fn make_observer;
    void *observer_ctx;
    uint32_t tracers_registered;
    kpt_status register_answer; /* the result of register_* */

    uint64_t now_ticks; /* the last value of the fake clock */

    uint64_t alloc_calls;
    uint64_t fail_alloc_at; /* 1 = the first; 0 = never */
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t bad_frees; /* of foreign memory, or with another size */

    char calls[MOCK_MAX_CALLS][MOCK_CALL_TEXT]; /* "name: argument" */
    uint32_t call_count;                        /* may exceed the log's length */
    pthread_mutex_t lock;
} mock_host;

void mock_host_init(mock_host *host, const char *name);
/* How many logged calls begin with PREFIX. */
uint32_t mock_host_count(mock_host *host, const char *prefix);

/* Opens a plugin as a host does. Returns NULL if it can't be opened or has no entry; WHY is then the
 * reason. */
kpt_plugin_entry_fn mock_open_plugin(const char *path, const char **why);

/* Returns COUNT bytes that end exactly at an inaccessible page. Never freed. */
void *mock_guarded(size_t count);

#ifdef __cplusplus
}
#endif
#endif
