#include "gpu_tracer/records/name_interner.h"

#include <dlfcn.h>

struct kpti_gpu_text {
    uint64_t hash;
    uint64_t bytes;    /* of the whole struct */
    uint32_t raw_size; /* size of the original text, which is first */
    uint32_t size;     /* size of the demangled text, which follows; 0 if they are equal */
    uint32_t demangled;
    uint32_t spare;
    char text[];
};

void kpti_names_init(kpti_gpu_names *names, kpti_gpu_budget *budget)
{
    memset(names, 0, sizeof *names);
    (void)pthread_mutex_init(&names->lock, NULL);
    names->budget = budget;
}

void kpti_names_free(kpti_gpu_names *names)
{
    for (uint32_t i = 0; i < names->capacity; i++)
        if (names->table[i])
            kpti_budget_free(names->budget, names->table[i], names->table[i]->bytes);
    kpti_budget_free(names->budget, names->table, names->capacity * sizeof *names->table);
    (void)pthread_mutex_destroy(&names->lock);
    names->table = NULL;
    names->capacity = names->count = 0;
}

static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = 14695981039346656037U;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211U;
    return hash ^ hash >> 29;
}

static kpti_gpu_text **slot_of(const kpti_gpu_names *names, uint64_t hash, const char *text,
                               size_t size, int demangle)
{
    for (uint64_t i = hash;; i++) {
        kpti_gpu_text **slot = &names->table[i & (names->capacity - 1)];
        if (!*slot ||
            ((*slot)->hash == hash && (*slot)->raw_size == size &&
             (*slot)->demangled == (uint32_t)demangle && memcmp((*slot)->text, text, size) == 0))
            return slot;
    }
}

static int grow(kpti_gpu_names *names)
{
    enum { FIRST_ROOM = 256 };
    kpti_gpu_names bigger = *names;
    bigger.capacity = names->capacity ? names->capacity * 2 : FIRST_ROOM;
    bigger.table = kpti_budget_alloc(names->budget, bigger.capacity * sizeof *bigger.table);
    if (!bigger.table) return 0;
    for (uint32_t i = 0; i < names->capacity; i++) {
        kpti_gpu_text *text = names->table[i];
        if (text)
            *slot_of(&bigger, text->hash, text->text, text->raw_size, (int)text->demangled) = text;
    }
    kpti_budget_free(names->budget, names->table, names->capacity * sizeof *names->table);
    names->table = bigger.table;
    names->capacity = bigger.capacity;
    return 1;
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

static kpti_gpu_text *make_text(kpti_gpu_names *names, uint64_t hash, const char *raw, size_t size,
                                int demangle)
{
    char *shown = demangle ? demangled(raw) : NULL;
    const size_t shown_size = shown ? strlen(shown) : 0;
    const uint64_t bytes = sizeof(kpti_gpu_text) + size + shown_size + 1;
    kpti_gpu_text *text = kpti_budget_alloc(names->budget, bytes);
    if (text) {
        text->hash = hash;
        text->bytes = bytes;
        text->raw_size = (uint32_t)size;
        text->size = (uint32_t)shown_size;
        text->demangled = (uint32_t)demangle;
        memcpy(text->text, raw, size);
        if (shown) memcpy(text->text + size, shown, shown_size);
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
    const uint64_t hash = hash_of(text, size);
    kpti_gpu_text **slot = NULL;
    kpt_str shown = {NULL, 0};
    if (!size || size > UINT32_MAX) return shown;
    (void)pthread_mutex_lock(&names->lock);
    if ((uint64_t)names->count * 2 < names->capacity || grow(names))
        slot = slot_of(names, hash, text, size, demangle);
    if (slot && !*slot) {
        *slot = make_text(names, hash, text, size, demangle);
        names->count += *slot != NULL;
    }
    if (slot) shown = shown_as(*slot);
    (void)pthread_mutex_unlock(&names->lock);
    return shown;
}
