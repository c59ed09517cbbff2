/* conform.h: helpers of the rules of kpt_conform.
 *
 * A rule is a function that runs in its own child process, so that a plugin which crashes, hangs or damages
 * its process fails that rule alone. It ends by returning (the rule holds), by conform_failed, or by
 * conform_unreached if the plugin provides nothing to check: an entry that declined, no activities, or an
 * earlier step that failed and that another rule checks. */
#ifndef CONFORM_H
#define CONFORM_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/fixtures/mock_host/mock_host.h"

typedef struct conform {
    const char *path;
    const char *libpython; /* run the workload in this Python; NULL if there is none */
    FILE *report;          /* where a rule reports what failed */
    kpt_plugin_entry_fn entry;
    mock_host host;
    kpt_plugin_info info;
} conform;

typedef struct conform_rule {
    const char *id;
    const char *text;
    void (*check)(conform *c);
} conform_rule;

#define RULE(number, words, function) \
    {                                 \
#number, words, function      \
    }

enum { RULE_HOLDS = 0, RULE_BROKEN = 1, RULE_NOT_REACHED = 2 };

/* The tables, each ended by a row of NULLs. */
extern const conform_rule conform_entry_rules[];
extern const conform_rule conform_make_rules[];
extern const conform_rule conform_state_rules[];
extern const conform_rule conform_delivery_rules[];
extern const conform_rule conform_order_rules[];
extern const conform_rule conform_mark_rules[];
extern const conform_rule conform_range_rules[];
extern const conform_rule conform_chunk_rules[];
extern const conform_rule conform_memory_rules[];
extern const conform_rule conform_observer_rules[];
extern const conform_rule conform_operator_rules[];
extern const conform_rule conform_registry_rules[];
extern const conform_rule conform_loader_rules[];
extern const conform_rule conform_traceback_rules[];
extern const conform_rule conform_symbol_rules[];
extern const conform_rule conform_stack_rules[];
extern const conform_rule conform_gpu_rules[];
extern const conform_rule conform_process_rules[];
extern const conform_rule conform_host_rules[];

/* Both end the child. */
__attribute__((format(printf, 2, 3), noreturn)) void conform_failed(conform *c, const char *format,
                                                                    ...);
__attribute__((format(printf, 2, 3), noreturn)) void conform_unreached(conform *c,
                                                                       const char *format, ...);

#define EXPECT(c, condition, ...)                           \
    do {                                                    \
        if (!(condition)) conform_failed((c), __VA_ARGS__); \
    } while (0)

/* Evaluates CALL once and compares its status. */
#define EXPECT_STATUS(c, wanted, call) conform_expect_status((c), (wanted), (call), #call)
void conform_expect_status(conform *c, kpt_status wanted, kpt_status got, const char *what);

/* Steps that most rules begin with. If one fails, the rule is not reached. */
void conform_load(conform *c);  /* sets c->entry */
void conform_enter(conform *c); /* also sets c->info, with the current c->host.table */
void conform_make(conform *c, kpt_tracer *tracer);   /* also makes a running tracer */
void conform_record(conform *c, kpt_tracer *tracer); /* also records the workload, and stops */
void conform_make_memory(conform *c, kpt_memory_tracer *memory);
void conform_make_observer(conform *c, kpt_observer *observer);

/* Runs the workload for a tracer: a Python program, if there is a Python. */
void conform_workload(conform *c);
/* Runs the rule's own Python program. Does nothing if there is no Python. */
void conform_python(conform *c, const char *program);
/* The same; the program's call() calls CALL, with the GIL. If there is no Python, CALL is called directly. */
void conform_in_python(conform *c, const char *program, void (*call)(void *ctx), void *ctx);
/* For use inside CALL: calls the given function without the GIL. */
void conform_without_gil(conform *c, void (*call)(void *ctx), void *ctx);
/* Returns a function of that Python. The rule is not reached if Python has no function of that name. */
void *conform_python_symbol(conform *c, const char *name);

/* Returns a struct of another size: BYTES bytes that end at an inaccessible page, with CLAIMED as
 * struct_size, then SIZE bytes of SOURCE, then garbage. */
void *conform_sized(const void *source, uint32_t size, uint32_t claimed, uint32_t bytes);

/* Returns 1 if all BYTES bytes at MEMORY have VALUE. */
int conform_filled(const void *memory, int value, size_t bytes);

/* Makes the path of a file that does not exist, in a fresh folder; the second function removes both. */
void conform_fresh_path(conform *c, char *path, size_t size);
void conform_remove_path(char *path);
/* Returns 1 if the file at PATH has TEXT in its first 64 kB. */
int conform_has_text(const char *path, const char *text);

/* Calls the factory that the plugin registered with the host, for the rules on make. */
kpt_status conform_try_make(conform *c, const kpt_tracer_args *args, kpt_tracer *out);

#endif
