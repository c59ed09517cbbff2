/* embed.h: what the scenarios of kpt_embed share: a CPython that was opened at run time, and CHECK.
 * A scenario ends the process with 1 at the first thing that is wrong. */
#ifndef KPT_LIFECYCLE_EMBED_H
#define KPT_LIFECYCLE_EMBED_H

#include "tests/python/lifecycle/host.h"

/* CPython's functions that are used here. */
typedef struct embed_python {
    void (*initialize)(int);
    int (*finalize)(void);
    int (*run)(const char *);
    int (*ensure)(void);
    void (*release)(int);
    void *(*save)(void);
    void (*restore)(void *);
    void *(*new_interpreter)(void); /* Py_NewInterpreter */
    void (*end_interpreter)(void *);
    void *(*swap)(void *); /* PyThreadState_Swap */
    void *(*add_module)(const char *);
    int (*set_attribute)(void *, const char *, void *);
    void *(*new_function)(void *, void *, void *); /* PyCFunction_NewEx */
    void *(*new_int)(long);
} embed_python;
extern embed_python py;

#define CHECK(condition, ...) \
    ((condition) ? (void)0 : embed_failed(__LINE__, #condition, __VA_ARGS__))
__attribute__((format(printf, 3, 4), noreturn)) void embed_failed(int line, const char *condition,
                                                                  const char *format, ...);

/* A number that a scenario was given in the environment, or its default. */
uint32_t embed_number(const char *variable, uint32_t otherwise);

void run_finalize(void);
void run_daemons(void);
void run_restart_in_next(void);
void run_start_at_exit(void);
void run_sub_interpreter(void);
void run_stress(void);
void run_snapshots(void);
void run_flush(void);
void run_flush_behind(void);
void run_stream(void);
void run_tracebacks(void);

#endif
