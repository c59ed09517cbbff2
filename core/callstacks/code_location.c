#include "core/callstacks/code_location.h"

#include <pthread.h>

#include "abi/kpt_text.h"
#include "core/base/hash.h"
#include "core/base/lock_owner.h"
#include "core/callstacks/function_table.h"
#include "core/callstacks/intern_table.h"
#include "core/callstacks/native_frames.h"

static uint64_t hash_of(const void *record)
{
    const kpti_code_location *p = record;
    uint64_t hash = kpti_hash_mix(p->kind, p->where);
    /* The function of a native location is set later. */
    if (p->kind == KPT_SYMBOL_NATIVE) return hash;
    hash = kpti_hash_mix(hash, atomic_load_explicit(&p->function, memory_order_relaxed));
    return kpti_hash_mix(hash, (uint64_t)p->line << 32 | p->column);
}

static int same(const void *record, const void *wanted)
{
    const kpti_code_location *a = record;
    const kpti_code_location *b = wanted;
    if (a->kind != b->kind || a->where != b->where) return 0;
    if (a->kind == KPT_SYMBOL_NATIVE) return 1;
    return atomic_load_explicit(&a->function, memory_order_relaxed) ==
               atomic_load_explicit(&b->function, memory_order_relaxed) &&
           a->line == b->line && a->end_line == b->end_line && a->column == b->column &&
           a->end_column == b->end_column;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;
static kpti_intern_table locations = {
    .record_size = sizeof(kpti_code_location), .max = INT32_MAX, .hash = hash_of, .same = same};

void kpti_code_locations_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_code_locations_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

uint32_t kpti_code_location_intern(const kpti_code_location *location)
{
    const uint64_t hash = hash_of(location);
    uint32_t number;
    kpti_assert(location->kind != KPT_SYMBOL_PYTHON || location->function); /* 0 has no name */
    kpti_code_locations_lock();
    number = kpti_intern_table_find(&locations, location, hash);
    if (!number) number = kpti_intern_table_add(&locations, location, hash);
    kpti_code_locations_unlock();
    return number;
}

const kpti_code_location *kpti_code_location_at(uint32_t number)
{
    return kpti_intern_table_at(&locations, number);
}

uint32_t kpti_code_location_end(void)
{
    return kpti_intern_table_end(&locations);
}

uint64_t kpti_code_location_bytes(void)
{
    uint64_t bytes;
    kpti_code_locations_lock();
    bytes = locations.bytes;
    kpti_code_locations_unlock();
    return bytes;
}

uint32_t kpti_code_location_reported(uint32_t kind, kpt_str name, kpt_str file, uint32_t line)
{
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    kpti_code_location location = {.kind = kind, .line = line, .end_line = line};
    uint32_t function;
    view.display = view.function = view.qualname = name;
    view.file = file;
    function = kpti_function_intern(&view);
    if (!function) return 0;
    atomic_init(&location.function, function);
    location.column = location.end_column = KPT_NO_COLUMN;
    return kpti_code_location_intern(&location);
}

/* Returns the function of a location. For a native location the thread looks the function up first;
 * threads that do so at the same time find the same function. */
static uint32_t function_of(kpti_code_location *location)
{
    uint32_t function = atomic_load_explicit(&location->function, memory_order_acquire);
    if (function || location->kind != KPT_SYMBOL_NATIVE) return function;
    function = kpti_native_function(location->where);
    atomic_store_explicit(&location->function, function, memory_order_release);
    return function;
}

kpt_symbol kpti_code_location_symbol(uint32_t number)
{
    kpti_code_location *location = kpti_intern_table_at(&locations, number);
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    kpt_symbol symbol = {.kind = location->kind};
    if (!kpti_function_describe(NULL, function_of(location), &view))
        view.function = view.qualname = view.file = kpt_str_of("??");
    symbol.name = view.function;
    symbol.qualname = view.qualname;
    symbol.file = view.file;
    symbol.address = location->where;
    symbol.first_line = view.first_line;
    symbol.line = location->line;
    symbol.end_line = location->end_line;
    symbol.column = location->column;
    symbol.end_column = location->end_column;
    return symbol;
}
