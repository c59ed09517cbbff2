#include "core/callstacks/function_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/lock_owner.h"
#include "core/callstacks/intern_table.h"

typedef struct record {
    uint32_t chain; /* used by the intern table */
    uint64_t hash;
    kpti_function_view view; /* its strings are in one allocation */
} record;

static uint64_t hash_of_record(const void *r)
{
    return ((const record *)r)->hash;
}

static int same_record(const void *r, const void *wanted);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;
static kpti_intern_table functions = {.record_size = sizeof(record),
                                      .max = KPTI_MAX_NUMBER - 1, /* KPTI_OPEN_SPAN is none */
                                      .hash = hash_of_record,
                                      .same = same_record};

void kpti_functions_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_functions_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    return (kpti_hash_bytes(hash, bytes, size) ^ size) * KPTI_HASH_FNV_PRIME;
}

static uint64_t hash_of(const kpti_function_view *f)
{
    uint64_t hash = KPTI_HASH_BYTES;
    hash = hash_bytes(hash, f->display.data, f->display.size);
    hash = hash_bytes(hash, f->qualname.data, f->qualname.size);
    hash = hash_bytes(hash, &f->first_line, sizeof f->first_line);
    hash = hash_bytes(hash, &f->scope, sizeof f->scope);
    return hash_bytes(hash, &f->kind, sizeof f->kind);
}

static int same_str(kpt_str a, kpt_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static int same(const kpti_function_view *a, const kpti_function_view *b)
{
    return a->kind == b->kind && a->scope == b->scope && a->first_line == b->first_line &&
           same_str(a->display, b->display) && same_str(a->qualname, b->qualname) &&
           same_str(a->function, b->function) && same_str(a->file, b->file);
}

static int same_record(const void *r, const void *wanted)
{
    const record *a = r;
    const record *b = wanted;
    return a->hash == b->hash && same(&a->view, &b->view);
}

static kpt_str copy_str(char **at, kpt_str from)
{
    kpt_str out = {*at, from.size};
    if (from.size) memcpy(*at, from.data, from.size);
    *at += from.size;
    return out;
}

static uint32_t add_locked(record r)
{
    const kpti_function_view *f = &r.view;
    char *text = malloc(f->display.size + f->function.size + f->qualname.size + f->file.size + 1);
    char *at = text;
    uint32_t id;
    kpti_assert(kpti_lock_is_mine(&lock_owner));
    if (!text) return 0;
    r.view.display = copy_str(&at, f->display);
    r.view.function = copy_str(&at, f->function);
    r.view.qualname = copy_str(&at, f->qualname);
    r.view.file = copy_str(&at, f->file);
    id = kpti_intern_table_add(&functions, &r, r.hash);
    if (id)
        functions.bytes += (uint64_t)(at - text);
    else
        free(text);
    return id;
}

uint32_t kpti_function_intern(const kpti_function_view *function)
{
    const record wanted = {.hash = hash_of(function), .view = *function};
    uint32_t id;
    kpti_functions_lock();
    id = kpti_intern_table_find(&functions, &wanted, wanted.hash);
    if (!id) id = add_locked(wanted);
    kpti_functions_unlock();
    return id;
}

uint32_t kpti_function_count(void)
{
    return kpti_intern_table_end(&functions);
}

uint64_t kpti_function_bytes(void)
{
    uint64_t bytes;
    kpti_functions_lock();
    bytes = functions.bytes;
    kpti_functions_unlock();
    return bytes;
}

int kpti_function_describe(void *ctx, uint32_t id, kpti_function_view *out)
{
    (void)ctx;
    if (id == 0 || id >= kpti_function_count()) return 0;
    *out = ((const record *)kpti_intern_table_at(&functions, id))->view;
    kpti_assert(out->kind); /* the record is complete before its id is visible */
    return 1;
}
