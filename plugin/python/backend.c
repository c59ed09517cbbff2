#include "plugin/python/backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "plugin/base/verbose_log.h"
#include "plugin/python/find_python.h"
#include "plugin/python/loader_fork_lock.h"

/* An address of this library, for dladdr to find the library's path. */
static const char here;

int kpti_path_beside_plugin(const char *name, char *out, size_t size)
{
    Dl_info info;
    const char *slash;
    int length;
    if (!dladdr(&here, &info) || !info.dli_fname) return 0;
    slash = strrchr(info.dli_fname, '/');
    length = snprintf(out, size, "%.*s%s", slash ? (int)(slash + 1 - info.dli_fname) : 0,
                      info.dli_fname, name);
    return length > 0 && (size_t)length < size;
}

static int path_of_backend(const kpti_python *python, char *out, size_t size)
{
    char name[64];
    (void)snprintf(name, sizeof name, "libkpytrace_cpython%d.%d%s.so", python->major, python->minor,
                   python->free_threaded ? "t" : "");
    return kpti_path_beside_plugin(name, out, size);
}

void *kpti_open_library(const char *path, int flags)
{
    void *library;
    kpti_fork_wait_begin();
    library = dlopen(path, flags);
    kpti_fork_wait_end();
    return library;
}

static const char *refusal(kpti_python_state state)
{
    switch (state) {
    case KPTI_PYTHON_ASLEEP:
        return "is not initialised, or finalised already";
    case KPTI_PYTHON_ENDING:
        return "is being finalised, or finalised already"; /* CPython does not report which */
    case KPTI_PYTHON_ABSENT:
    case KPTI_PYTHON_READY:
        break;
    }
    return NULL;
}

/* A backend leaves Python's symbols undefined. If the host opened libpython with RTLD_LOCAL, the loader could
 * not resolve them, so libpython is made global first. This changes nothing if it is global already. */
static void promote(const kpt_host *host, const kpti_python *python)
{
    if (python->in_executable) return;
    if (kpti_open_library(python->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL))
        kpti_say(host, KPT_LOG_DEBUG, "backend: %s is visible to backends now", python->path);
    else
        kpti_say(host, KPT_LOG_WARNING, "backend: %s can't be made visible: %s", python->path,
                 dlerror());
}

static const kpti_backend *open_backend(const kpti_python *python, const char *path,
                                        kpti_error *why)
{
    void *library = kpti_open_library(path, RTLD_NOW | RTLD_LOCAL);
    kpti_backend_entry_fn entry;
    const kpti_backend *backend;
    if (!library) {
        (void)kpti_fail(why, KPT_DECLINED, "the backend can't be loaded: %s", dlerror());
        return NULL;
    }
    *(void **)&entry = dlsym(library, KPTI_BACKEND_ENTRY_NAME);
    backend = entry ? entry() : NULL;
    if (!backend || backend->interface != KPTI_INTERFACE ||
        strcmp(backend->version, KPTI_VERSION) != 0 ||
        backend->python_minor != (uint32_t)python->minor ||
        backend->free_threaded != (uint32_t)python->free_threaded) {
        (void)kpti_fail(why, KPT_DECLINED, "%s is not a backend of kpytrace %s for CPython %d.%d%s",
                        path, KPTI_VERSION, python->major, python->minor,
                        python->free_threaded ? "t" : "");
        (void)dlclose(library);
        return NULL;
    }
    return backend;
}

const kpti_backend *kpti_backend_find(const kpt_host *host, kpti_error *why)
{
    kpti_python python;
    char path[PATH_MAX];
    const kpti_backend *backend;
    kpti_find_python(&python);
    if (python.state == KPTI_PYTHON_ABSENT) {
        (void)kpti_fail(why, KPT_DECLINED, "there is no CPython in this process");
        return NULL;
    }
    kpti_say(host, KPT_LOG_DEBUG, "python: found %s in %s%s", python.version,
             python.in_executable ? "the executable " : "", python.path);
    if (refusal(python.state)) {
        (void)kpti_fail(why, KPT_DECLINED, "CPython %d.%d %s", python.major, python.minor,
                        refusal(python.state));
        return NULL;
    }
    if (!path_of_backend(&python, path, sizeof path)) {
        (void)kpti_fail(why, KPT_DECLINED,
                        "cannot determine the path of libkpytrace.so (dladdr failed)");
        return NULL;
    }
    if (access(path, R_OK) != 0) {
        (void)kpti_fail(why, KPT_DECLINED, "there is no backend for CPython %d.%d%s: looked for %s",
                        python.major, python.minor, python.free_threaded ? "t" : "", path);
        return NULL;
    }
    promote(host, &python);
    backend = open_backend(&python, path, why);
    if (backend) kpti_say(host, KPT_LOG_DEBUG, "backend: opened %s", path);
    return backend;
}
