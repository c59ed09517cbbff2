/* helper.h: helpers of the scenarios of kpt_helper. Each scenario is a small host in its own process: it
 * checks itself, reports the first failure and exits with 1. */
#ifndef KPT_LOAD_HELPER_H
#define KPT_LOAD_HELPER_H

#include "tests/fixtures/mock_host/mock_host.h"

/* A mock host and its binding with the plugin. */
typedef struct bound {
    mock_host host;
    kpt_plugin_info info;
} bound;

/* Ends the process with the source position and the text, unless CONDITION holds. Safe in a forked child. */
#define CHECK(condition, ...) \
    ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition, __VA_ARGS__))
__attribute__((format(printf, 4, 5), noreturn)) void
failed(const char *file, int line, const char *condition, const char *format, ...);

/* The plugin that the scenario is about, and its entry. */
extern const char *plugin_path;
kpt_plugin_entry_fn open_plugin(void);

/* Binds a new mock host of that name. The host is large, and lives until the process ends. */
bound *bind_host(const char *name);
void release(bound *b); /* detaches, and checks that no memory is out */

kpt_tracer make_tracer(bound *b);
kpt_memory_tracer make_memory(bound *b);
kpt_observer make_observer(bound *b);
kpt_tracebacks make_tracebacks(bound *b); /* empty if the plugin is too old to have tracebacks */

/* The text of LAST_ERROR, valid until the next call of this on the same thread. */
const char *error_text(kpt_last_error_fn last_error, kpt_handle self);

/* The scenarios. */
void run_silent(void);
void run_report(void);
void run_two_hosts(void);
void run_twice(void);
void run_closed(void);
void run_fork(void);
void run_threads(void);
void run_fork_threads(void);
void run_fork_load(void);
void run_failing_alloc(void);
void run_states(void);
void run_refusals(void);

#endif
