#include "core/callstacks/native_frames.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/kpt_text.h"
#include "core/callstacks/function_table.h"

#ifdef DLFO_STRUCT_HAS_EH_DBASE
#pragma weak _dl_find_object /* since glibc 2.35 */
#endif

/* The first backtrace() of a process loads the unwinder. prepare() makes that call once, so that no
 * later walk loads it in the middle of its caller's work. */
static void prepare(void)
{
    void *one[1];
    (void)backtrace(one, 1);
}

/* Returns the file of the library that contains ADDRESS, or NULL if unknown. Avoids the loader's
 * lock if possible: the thread that holds it may be waiting for the GIL, which our caller may
 * hold. */
static const char *library_of(void *address)
{
    Dl_info info;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    struct dl_find_object found;
    if (_dl_find_object)
        return _dl_find_object(address, &found) == 0 ? found.dlfo_link_map->l_name : NULL;
#endif
    return dladdr(address, &info) ? info.dli_fname : NULL;
}

/* Whether ADDRESS is in the plugin or in a backend. */
static int is_own(void *address)
{
    const char *file = library_of(address);
    const char *slash = file ? strrchr(file, '/') : NULL;
    return file && strncmp(slash ? slash + 1 : file, "libkpytrace", strlen("libkpytrace")) == 0;
}

uint32_t kpti_native_walk(uint64_t out[KPTI_MAX_NATIVE])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *addresses[KPTI_MAX_NATIVE];
    uint32_t kept = 0;
    int count;
    int first = 0;
    (void)pthread_once(&once, prepare);
    count = backtrace(addresses, KPTI_MAX_NATIVE);
    while (first < count && is_own(addresses[first]))
        first++;
    for (int i = first; i < count; i++)
        out[kept++] = (uintptr_t)addresses[i];
    return kept;
}

typedef char *(*demangle_fn)(const char *name, char *out, size_t *size, int *status);

/* Demangles a C++ name if libstdc++ is in the process. Returns a string that the caller frees, or
 * NULL if NAME is not a C++ name. */
static char *demangled(const char *name)
{
    demangle_fn demangle = NULL;
    int status = -1;
    if (strncmp(name, "_Z", 2) != 0) return NULL;
    *(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}

uint32_t kpti_native_function(uint64_t address)
{
    kpti_function_view view = {.kind = KPT_KIND_C};
    char *readable = NULL;
    Dl_info info;
    uint32_t id;
    view.function = view.file = kpt_str_of("??");
    /* address - 1, because a call that never returns may be the last instruction of its
     * function. */
    if (address && dladdr((void *)(uintptr_t)(address - 1), &info)) {
        if (info.dli_sname) readable = demangled(info.dli_sname);
        if (info.dli_sname) view.function = kpt_str_of(readable ? readable : info.dli_sname);
        if (info.dli_fname && info.dli_fname[0]) view.file = kpt_str_of(info.dli_fname);
    }
    view.display = view.qualname = view.function;
    id = kpti_function_intern(&view);
    free(readable);
    return id;
}
