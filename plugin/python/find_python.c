#include "plugin/python/find_python.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/python/elf_symbol.h"
#include "plugin/python/loader_fork_lock.h"

/* The maximum number of CPythons in one process that are examined. Two is already rare. */
enum { MAX_CANDIDATES = 8 };

typedef struct candidate {
    uintptr_t is_initialized;
    uintptr_t is_finalizing; /* 0 if this version has no such function */
    uintptr_t own_state;     /* returns the calling thread's state; 0 if there is none */
    uintptr_t get_version;
    char path[PATH_MAX];
} candidate;

typedef struct candidates {
    candidate items[MAX_CANDIDATES];
    size_t count;
} candidates;

static int note_candidate(const kpti_elf_object *object, void *ctx)
{
    candidates *all = ctx;
    candidate *c = &all->items[all->count];
    c->is_initialized = kpti_elf_symbol(object, "Py_IsInitialized");
    c->get_version = kpti_elf_symbol(object, "Py_GetVersion");
    if (!c->is_initialized || !c->get_version) return 0;
    c->is_finalizing = kpti_elf_symbol(object, "Py_IsFinalizing"); /* 3.13 and later */
    if (!c->is_finalizing) c->is_finalizing = kpti_elf_symbol(object, "_Py_IsFinalizing");
    c->own_state = kpti_elf_symbol(object, "PyGILState_GetThisThreadState");
    (void)snprintf(c->path, sizeof c->path, "%s", object->path);
    return ++all->count == MAX_CANDIDATES;
}

int kpti_parse_python_version(const char *text, kpti_python *out)
{
    char *end;
    long major = strtol(text, &end, 10);
    long minor;
    if (end == text || *end != '.' || !isdigit((unsigned char)end[1])) return 0;
    minor = strtol(end + 1, &end, 10);
    if (major != 3 || minor < 0 || minor > 99) return 0;
    out->major = (int)major;
    out->minor = (int)minor;
    out->free_threaded = *end == 't' || strstr(text, "free-threading") != NULL;
    (void)snprintf(out->version, sizeof out->version, "%.*s", (int)strcspn(text, "\n"), text);
    return 1;
}

/* While it imports site, CPython 3.15 reports that it is not initialised yet, but a thread that Python calls
 * has a thread state. PyGILState_GetThisThreadState is legal at any time. */
static kpti_python_state state_of(const candidate *c)
{
    void *(*own_state)(void) = (void *(*)(void))c->own_state;
    int (*is_initialized)(void) = (int (*)(void))c->is_initialized;
    int (*is_finalizing)(void) = (int (*)(void))c->is_finalizing;
    if (is_finalizing && is_finalizing()) return KPTI_PYTHON_ENDING;
    if (is_initialized() || (own_state && own_state())) return KPTI_PYTHON_READY;
    return KPTI_PYTHON_ASLEEP;
}

static void describe(const candidate *c, kpti_python_state state, kpti_python *out)
{
    const char *(*get_version)(void) = (const char *(*)(void))c->get_version;
    if (!kpti_parse_python_version(get_version(), out)) return;
    out->state = state;
    out->in_executable = c->path[0] == 0;
    (void)snprintf(out->path, sizeof out->path, "%s", c->path);
    if (out->in_executable) {
        ssize_t length = readlink("/proc/self/exe", out->path, sizeof out->path - 1);
        out->path[length > 0 ? length : 0] = 0;
    }
}

void kpti_find_python(kpti_python *out)
{
    /* 32 kB of paths, which is too much for a stack that the host owns. This call is rare, so the heap is cheap
     * enough. */
    candidates *all = calloc(1, sizeof *all);
    memset(out, 0, sizeof *out);
    if (!all) return;
    /* One thread at a time, also because Py_GetVersion of 3.11 and older writes its text again at each call,
     * and another thread could read it half empty. (Test: load, fork_threads.) */
    kpti_fork_wait_begin();
    kpti_elf_walk(note_candidate, all);
    for (size_t i = 0; i < all->count; i++) {
        kpti_python_state state = state_of(&all->items[i]);
        if (state > out->state) describe(&all->items[i], state, out);
    }
    kpti_fork_wait_end();
    free(all);
}
