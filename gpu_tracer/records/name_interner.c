#include "gpu_tracer/records/name_interner.h"

#include <dlfcn.h>

#include "core/base/hash.h"

typedef struct kpti_gpu_text {
    uint64_t hash;
    uint64_t bytes;    /* of the whole struct */
    uint32_t raw_size; /* size of the original text, which is first */
    uint32_t size;     /* size of the demangled text, which follows; 0 if they are equal */
    uint32_t demangled;
    uint32_t spare;
    char text[];
} kpti_gpu_text;

/* A name that is looked up. */
typedef struct wanted_text {
    uint64_t hash;
    const char *text;
    size_t size;
    int demangle;
} wanted_text;

static int is_used(const void *slot)
{
    return *(kpti_gpu_text *const *)slot != NULL;
}

static int has_key(const void *slot, const void *key, const void *ctx)
{
    const kpti_gpu_text *text = *(kpti_gpu_text *const *)slot;
    const wanted_text *wanted = key;
    (void)ctx;
    return text->hash == wanted->hash && text->raw_size == wanted->size &&
           text->demangled == (uint32_t)wanted->demangle &&
           memcmp(text->text, wanted->text, wanted->size) == 0;
}

static uint64_t hash(const void *slot, const void *ctx)
{
    (void)ctx;
    return (*(kpti_gpu_text *const *)slot)->hash;
}

static const kpti_hash_slots slots = {sizeof(kpti_gpu_text *), 256, is_used, has_key, hash};

void kpti_names_init(kpti_gpu_names *names, kpti_gpu_budget *budget)
{
    memset(names, 0, sizeof *names);
    (void)pthread_mutex_init(&names->lock, NULL);
    names->budget = budget;
}

void kpti_names_free(kpti_gpu_names *names)
{
    const kpti_heap heap = kpti_budget_heap(names->budget);
    for (uint64_t i = 0; i < names->texts.capacity; i++) {
        kpti_gpu_text *text = *(kpti_gpu_text **)kpti_hash_table_at(&names->texts, &slots, i);
        if (text) kpti_budget_free(names->budget, text, text->bytes);
    }
    kpti_hash_table_free(&names->texts, &slots, &heap);
    (void)pthread_mutex_destroy(&names->lock);
}

static uint64_t hash_of(const char *text, size_t size)
{
    const uint64_t fnv = kpti_hash_bytes(KPTI_HASH_BYTES, text, size);
    return fnv ^ fnv >> 29;
}

typedef char *(*demangle_fn)(const char *mangled, char *capacity, size_t *size, int *status);

/* Returns the demangler of the C++ runtime in the process or the system, or NULL if there is none. Python's
 * modules load the C++ runtime where dlsym alone does not find it. Called once per name, so the result is
 * not cached. */
static demangle_fn find_demangle(void)
{
    demangle_fn found = NULL;
    void *library;
    *(void **)&found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    if (found) return found;
    library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL); /* stays open */
    if (library) *(void **)&found = dlsym(library, "__cxa_demangle");
    return found;
}

/* Returns the demangled text, or NULL if TEXT is not a mangled name or can't be demangled. The caller frees
 * it. */
static char *demangled(const char *text)
{
    const int is_mangled = text[0] == '_' && text[1] == 'Z';
    const demangle_fn demangle = is_mangled ? find_demangle() : NULL;
    int status = 0;
    return demangle ? demangle(text, NULL, NULL, &status) : NULL;
}

static kpti_gpu_text *make_text(kpti_gpu_names *names, const wanted_text *wanted)
{
    char *shown = wanted->demangle ? demangled(wanted->text) : NULL;
    const size_t shown_size = shown ? strlen(shown) : 0;
    const uint64_t bytes = sizeof(kpti_gpu_text) + wanted->size + shown_size + 1;
    kpti_gpu_text *text = kpti_budget_alloc(names->budget, bytes);
    if (text) {
        text->hash = wanted->hash;
        text->bytes = bytes;
        text->raw_size = (uint32_t)wanted->size;
        text->size = (uint32_t)shown_size;
        text->demangled = (uint32_t)wanted->demangle;
        memcpy(text->text, wanted->text, wanted->size);
        if (shown) memcpy(text->text + wanted->size, shown, shown_size);
    }
    free(shown);
    return text;
}

static kpt_str shown_as(const kpti_gpu_text *text)
{
    if (!text) return (kpt_str){NULL, 0};
    return text->size ? (kpt_str){text->text + text->raw_size, text->size}
                      : (kpt_str){text->text, text->raw_size};
}

kpt_str kpti_names_keep(kpti_gpu_names *names, const char *text, int demangle)
{
    const size_t size = text ? strlen(text) : 0;
    const wanted_text wanted = {hash_of(text, size), text, size, demangle};
    const kpti_heap heap = kpti_budget_heap(names->budget);
    kpti_gpu_text **slot = NULL;
    kpt_str shown = {NULL, 0};
    if (!size || size > UINT32_MAX) return shown;
    (void)pthread_mutex_lock(&names->lock);
    if (kpti_hash_table_reserve(&names->texts, &slots, &heap, NULL))
        slot = kpti_hash_table_find(&names->texts, &slots, wanted.hash, &wanted, NULL);
    if (slot && !*slot) {
        *slot = make_text(names, &wanted);
        names->texts.count += *slot != NULL;
    }
    if (slot) shown = shown_as(*slot);
    (void)pthread_mutex_unlock(&names->lock);
    return shown;
}
