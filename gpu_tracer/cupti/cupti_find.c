/* cupti_find.c: see cupti_find.h. The search order is: the path in KPYTRACE_CUPTI; a CUPTI that is loaded
 * already, since the process must have only one, which other tools use as well; the major version of the
 * loaded CUDA runtime; the newest major version. */
#include "gpu_tracer/cupti/cupti_find.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include "abi/impl/kpti_impl.h"

enum { MAJORS = 2, FOLDERS = 16 };
static const int majors[MAJORS] = {13, 12};

/* What the loader's list of objects shows. */
typedef struct loaded {
    int major;             /* of libcudart; 0 if it is not loaded */
    char cudart[PATH_MAX]; /* its folder */
    char torch[PATH_MAX];  /* a loaded Python package's folder, which may have nvidia/ */
} loaded;

static void keep_folder(const char *path, size_t length, char *out)
{
    if (length >= PATH_MAX) return;
    memcpy(out, path, length);
    out[length] = 0;
}

static int look(struct dl_phdr_info *info, size_t size, void *ctx)
{
    loaded *l = ctx;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    const char *packages;
    static const char cudart[] = "/libcudart.so.";
    (void)size;
    if (!slash) return 0;
    if (strncmp(slash, cudart, sizeof cudart - 1) == 0) {
        l->major = (int)strtol(slash + sizeof cudart - 1, NULL, 10);
        keep_folder(info->dlpi_name, (size_t)(slash - info->dlpi_name), l->cudart);
    }
    packages = strstr(info->dlpi_name, "-packages/");
    if (packages && !l->torch[0])
        keep_folder(info->dlpi_name, (size_t)(packages - info->dlpi_name) + sizeof "-packages" - 1,
                    l->torch);
    return 0;
}

/* Folders that may have a library of the major version, the most likely first; %s is the folder of the row. */
typedef struct candidate {
    const char *folder;
    const char *format;
} candidate;

static int folders_of(const loaded *l, int major, candidate *out)
{
    const char *home = getenv("CUDA_HOME");
    const char *const pip = major == 12 ? "%s/nvidia/cuda_cupti/lib" : "%s/nvidia/cu13/lib";
    const candidate all[] = {
        {l->cudart, "%s"},
        {l->cudart, "%s/../../cuda_cupti/lib"},
        {l->cudart, "%s/../extras/CUPTI/lib64"},
        {l->torch, pip},
        {home, "%s/extras/CUPTI/lib64"},
        {home, "%s/lib64"},
        {"/usr/local/cuda", "%s/extras/CUPTI/lib64"},
        {"/usr/local/cuda", "%s/lib64"},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].folder && all[i].folder[0]) out[count++] = all[i];
    return count;
}

/* Finds the first existing file among the folders for MAJOR. */
static int find_file(const loaded *l, int major, char *path, size_t size)
{
    candidate folders[FOLDERS];
    int count = folders_of(l, major, folders);
    for (int i = 0; i < count; i++) {
        char folder[PATH_MAX];
        int length = snprintf(folder, sizeof folder, folders[i].format, folders[i].folder);
        if (length <= 0 || (size_t)length >= sizeof folder) continue;
        length = snprintf(path, size, "%s/libcupti.so.%d", folder, major);
        if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) return 1;
    }
    return 0;
}

static void *keep_path(void *library, char *path, size_t size)
{
    const struct link_map *map = NULL;
    if (library && dlinfo(library, RTLD_DI_LINKMAP, (void *)&map) == 0 && map)
        (void)snprintf(path, size, "%s", map->l_name);
    return library;
}

static void *open_loaded(char *path, size_t size)
{
    for (int i = 0; i < MAJORS; i++) {
        char name[32];
        void *library;
        (void)snprintf(name, sizeof name, "libcupti.so.%d", majors[i]);
        library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (library) return keep_path(library, path, size);
    }
    return NULL;
}

static void *open_major(const loaded *l, int major, char *path, size_t size)
{
    char name[32];
    void *library;
    if (find_file(l, major, path, size)) {
        library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (library) return library;
    }
    (void)snprintf(name, sizeof name, "libcupti.so.%d", major);
    return keep_path(dlopen(name, RTLD_LAZY | RTLD_LOCAL), path, size);
}

/* Orders MAJORS with the loaded runtime's first. */
static void order(const loaded *l, int out[MAJORS])
{
    const int second = l->major == majors[1];
    out[0] = majors[second];
    out[1] = majors[!second];
}

void *kpti_cupti_find(char *path, size_t size, char *text, size_t text_size)
{
    const char *said = getenv("KPYTRACE_CUPTI");
    void *library;
    loaded l = {0};
    int wanted[MAJORS];
    if (said && said[0]) {
        library = keep_path(dlopen(said, RTLD_LAZY | RTLD_LOCAL), path, size);
        if (!library) (void)snprintf(text, text_size, "KPYTRACE_CUPTI is %s: %s", said, dlerror());
        return library;
    }
    library = open_loaded(path, size);
    if (library) return library;
    (void)dl_iterate_phdr(look, &l);
    order(&l, wanted);
    for (int i = 0; i < MAJORS && !library; i++)
        library = open_major(&l, wanted[i], path, size);
    if (!library)
        (void)snprintf(text, text_size,
                       "searched for libcupti.so.13 and .12 by name, beside libcudart, in "
                       "CUDA_HOME, in /usr/local/cuda and in pip's folders");
    return library;
}

const char *kpti_cupti_likely_path(char *capacity, size_t size)
{
    const char *said = getenv("KPYTRACE_CUPTI");
    loaded l = {0};
    int wanted[MAJORS];
    void *library;
    if (said && said[0]) return said;
    library = open_loaded(capacity, size);
    if (library) {
        (void)dlclose(library);
        return capacity;
    }
    (void)dl_iterate_phdr(look, &l);
    order(&l, wanted);
    for (int i = 0; i < MAJORS; i++)
        if (find_file(&l, wanted[i], capacity, size)) return capacity;
    return NULL;
}
