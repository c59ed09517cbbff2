/* elf_symbol.h: symbols of the objects that are loaded in this process, wherever they were loaded:
 * dlsym does not see a library that somebody opened RTLD_LOCAL, the loader's own list does. */
#ifndef KPTI_PLUGIN_PYTHON_ELF_SYMBOL_H
#define KPTI_PLUGIN_PYTHON_ELF_SYMBOL_H

#include <stdint.h>

/* A loaded object, as the loader describes it during the walk only. */
typedef struct kpti_elf_object {
    const char *path; /* "" for the executable */
    uintptr_t base;
    const void *dynamic;
} kpti_elf_object;

/* Calls VISIT for each loaded object until it returns non-zero. The loader's lock is held
 * meanwhile: VISIT must not load, unload or call into an object. */
void kpti_elf_walk(int (*visit)(const kpti_elf_object *object, void *ctx), void *ctx);

/* The address of a symbol that OBJECT defines and exports, or 0. */
uintptr_t kpti_elf_symbol(const kpti_elf_object *object, const char *name);

#endif
