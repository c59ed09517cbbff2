#include "gpu_tracer/cupti/cupti_library.h"

#include <dlfcn.h>
#include <stddef.h>

#include "gpu_tracer/cupti/cupti_find.h"

static const struct symbol {
    const char *name;
    size_t offset;
    int needed;
} symbols[] = {
#define ROW(name, needed) {#name, offsetof(kpti_cupti, name), needed},
    KPTI_CUPTI(ROW)
#undef ROW
};
enum { SYMBOLS = sizeof symbols / sizeof symbols[0] };

static kpt_status take_symbols(void *library, kpti_cupti *cupti, kpti_error *error)
{
    for (int i = 0; i < SYMBOLS; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address && symbols[i].needed)
            return kpti_fail(error, KPT_E_UNSUPPORTED,
                             "%s has no function %s: it is not CUPTI, or its version is too old",
                             cupti->path, symbols[i].name);
        *(void **)((char *)cupti + symbols[i].offset) = address;
    }
    return KPT_OK;
}

kpt_status kpti_cupti_open(const kpti_cupti **out, kpti_error *error)
{
    static kpti_cupti known;
    static int is_known;
    kpti_cupti cupti = {0};
    char looked[160];
    void *library;
    kpt_status status;
    *out = &known;
    if (is_known) return KPT_OK;
    library = kpti_cupti_find(cupti.path, sizeof cupti.path, looked, sizeof looked);
    if (!library)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "cannot load CUPTI (%s); set KPYTRACE_CUPTI to its path", looked);
    status = take_symbols(library, &cupti, error);
    if (status == KPT_OK && cupti.cuptiGetVersion(&cupti.version) != CUPTI_SUCCESS)
        /* CUPTI may need a driver before it reports its version */
        cupti.version = strstr(cupti.path, ".so.12") ? 0 : 130000;
    if (status != KPT_OK) return status;
    known = cupti;
    is_known = 1;
    return KPT_OK;
}
