/* elf_symbol.h: finds symbols of all objects loaded in this process. dlsym does not search a library that was
 * opened with RTLD_LOCAL; the loader's own list of objects has it. */
#ifndef KPTI_PLUGIN_PYTHON_ELF_SYMBOL_H
#define KPTI_PLUGIN_PYTHON_ELF_SYMBOL_H

#include <stdint.h>

/* A loaded object, as the loader describes it. Valid only during the walk. */
typedef struct kpti_elf_object {
    const char *path; /* "" for the executable */
    uintptr_t base;
    const void *dynamic;
} kpti_elf_object;

/* Calls VISIT for each loaded object until it returns non-zero. The loader's lock is held meanwhile, so VISIT
 * must not load, unload or call into an object. */
void kpti_elf_walk(int (*visit)(const kpti_elf_object *object, void *ctx), void *ctx);

/* Returns the address of a symbol that OBJECT defines and exports, or 0. */
uintptr_t kpti_elf_symbol(const kpti_elf_object *object, const char *name);

#endif
