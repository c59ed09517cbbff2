#include "core/callstacks/code_location.h"

#include <pthread.h>

#include "abi/kpt_text.h"
#include "core/callstacks/function_table.h"
#include "core/callstacks/intern_table.h"
#include "core/callstacks/native_frames.h"

static uint64_t hash_of(const void *record)
{
    const kpti_place *p = record;
    uint64_t hash = kpti_hash_mix(p->kind, p->where);
    /* The function of a native location is set later. */
    if (p->kind == KPT_SYMBOL_NATIVE) return hash;
    hash = kpti_hash_mix(hash, atomic_load_explicit(&p->function, memory_order_relaxed));
    return kpti_hash_mix(hash, (uint64_t)p->line << 32 | p->column);
}

static int same(const void *record, const void *wanted)
{
    const kpti_place *a = record;
    const kpti_place *b = wanted;
    if (a->kind != b->kind || a->where != b->where) return 0;
    if (a->kind == KPT_SYMBOL_NATIVE) return 1;
    return atomic_load_explicit(&a->function, memory_order_relaxed) ==
               atomic_load_explicit(&b->function, memory_order_relaxed) &&
           a->line == b->line && a->end_line == b->end_line && a->column == b->column &&
           a->end_column == b->end_column;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_pool places = {
    .record_size = sizeof(kpti_place), .most = INT32_MAX, .hash = hash_of, .same = same};

void kpti_places_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_places_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

uint32_t kpti_place_intern(const kpti_place *place)
{
    const uint64_t hash = hash_of(place);
    uint32_t number;
    kpti_places_lock();
    number = kpti_pool_find(&places, place, hash);
    if (!number) number = kpti_pool_add(&places, place, hash);
    kpti_places_unlock();
    return number;
}

const kpti_place *kpti_place_at(uint32_t number)
{
    return kpti_pool_at(&places, number);
}

uint32_t kpti_place_end(void)
{
    return kpti_pool_end(&places);
}

uint64_t kpti_place_bytes(void)
{
    uint64_t bytes;
    kpti_places_lock();
    bytes = places.bytes;
    kpti_places_unlock();
    return bytes;
}

uint32_t kpti_place_told(uint32_t kind, kpt_str name, kpt_str file, uint32_t line)
{
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    kpti_place place = {.kind = kind, .line = line, .end_line = line};
    uint32_t function;
    view.display = view.function = view.qualname = name;
    view.file = file;
    function = kpti_function_intern(&view);
    if (!function) return 0;
    atomic_init(&place.function, function);
    place.column = place.end_column = KPT_NO_COLUMN;
    return kpti_place_intern(&place);
}

/* Returns the function of a location. For a native location the thread looks the function up first;
 * threads that do so at the same time find the same function. */
static uint32_t function_of(kpti_place *place)
{
    uint32_t function = atomic_load_explicit(&place->function, memory_order_acquire);
    if (function || place->kind != KPT_SYMBOL_NATIVE) return function;
    function = kpti_native_function(place->where);
    atomic_store_explicit(&place->function, function, memory_order_release);
    return function;
}

kpt_symbol kpti_place_symbol(uint32_t number)
{
    kpti_place *place = kpti_pool_at(&places, number);
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    kpt_symbol symbol = {.kind = place->kind};
    if (!kpti_function_describe(NULL, function_of(place), &view))
        view.function = view.qualname = view.file = kpt_str_of("??");
    symbol.name = view.function;
    symbol.qualname = view.qualname;
    symbol.file = view.file;
    symbol.address = place->where;
    symbol.first_line = view.first_line;
    symbol.line = place->line;
    symbol.end_line = place->end_line;
    symbol.column = place->column;
    symbol.end_column = place->end_column;
    return symbol;
}
