/* tables.h: the tables as C++ can call them: their own headers have C's atomics. */
#ifndef KPT_TEST_TABLES_H
#define KPT_TEST_TABLES_H

#include "abi/kpt_base.h"
#include "abi/kpt_traceback.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pool of its own, of numbers that are their own content. */
typedef struct test_pool test_pool;
test_pool *pool_make(uint32_t max, uint64_t hash_mask);
uint32_t pool_find(test_pool *pool, uint64_t content);
uint32_t pool_add(test_pool *pool, uint64_t content);
void pool_remove(test_pool *pool, uint32_t number);
uint64_t pool_content(test_pool *pool, uint32_t number);
uint32_t pool_used(const test_pool *pool);
void pool_free(test_pool *pool);

/* The process's tree. A stack that is made has one holder. */
uint32_t stack_make(const uint32_t *locations, uint32_t count); /* innermost first */
void stack_retain(uint32_t stack);
void stack_release(uint32_t stack);
uint32_t stack_below(uint32_t stack);
uint32_t stack_place(uint32_t stack);
void stacks_free_dead(uint64_t max);
uint64_t stacks_nodes(void);
uint64_t stacks_dead(void);

uint32_t place_told(uint32_t kind, const char *name, const char *file, uint32_t line);
uint32_t place_python(const char *name, uint64_t offset, uint32_t line);
uint32_t place_native(uint64_t address);
uint32_t places_end(void);
kpt_symbol place_symbol(uint32_t number);

/* symbolize, with malloc or, from the FAIL_AFTERth time on, without memory; 0: always with. */
kpt_status symbolize(const kpt_traceback *tracebacks, uint64_t count, kpt_generated_fn generated,
                     void *generated_ctx, kpt_symbols_fn sink, void *sink_ctx, uint32_t fail_after);
kpt_status symbolize_places(const uint32_t *locations, uint64_t count, kpt_symbols_fn sink,
                            void *sink_ctx);

#ifdef __cplusplus
}
#endif
#endif
