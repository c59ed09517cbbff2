#include "plugin/python/elf_symbol.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
} tables;

/* glibc relocates most pointers of the dynamic section in place, but not the vdso's; musl relocates none. */
static const void *at(const kpti_elf_object *object, ElfW(Addr) address)
{
    uintptr_t absolute = address < object->base ? object->base + address : address;
    return (const void *)absolute;
}

static int find_tables(const kpti_elf_object *object, tables *out)
{
    memset(out, 0, sizeof *out);
    for (const ElfW(Dyn) *d = object->dynamic; d && d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB:
            out->symbols = at(object, d->d_un.d_ptr);
            break;
        case DT_STRTAB:
            out->strings = at(object, d->d_un.d_ptr);
            break;
        case DT_GNU_HASH:
            out->gnu_hash = at(object, d->d_un.d_ptr);
            break;
        case DT_HASH:
            out->sysv_hash = at(object, d->d_un.d_ptr);
            break;
        default:
            break;
        }
    }
    return out->symbols && out->strings && (out->gnu_hash || out->sysv_hash);
}

static int is_definition(const tables *t, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &t->symbols[index];
    return symbol->st_shndx != SHN_UNDEF && strcmp(t->strings + symbol->st_name, name) == 0;
}

/* The hash functions and table layouts are those of the ELF gABI and of its GNU extension. */
static uint32_t find_gnu(const tables *t, const char *name)
{
    uint32_t bucket_count = t->gnu_hash[0];
    uint32_t first = t->gnu_hash[1];
    uint32_t bloom_words = t->gnu_hash[2];
    const uint32_t *buckets = t->gnu_hash + 4 + (size_t)bloom_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = buckets + bucket_count;
    uint32_t hash = 5381;
    uint32_t index;
    if (bucket_count == 0) return 0;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    index = buckets[hash % bucket_count];
    if (index < first) return 0;
    for (;; index++) {
        uint32_t word = chain[index - first];
        if ((word | 1) == (hash | 1) && is_definition(t, index, name)) return index;
        if (word & 1) return 0;
    }
}

static uint32_t find_sysv(const tables *t, const char *name)
{
    uint32_t bucket_count = t->sysv_hash[0];
    const uint32_t *buckets = t->sysv_hash + 2;
    const uint32_t *chain = buckets + bucket_count;
    uint32_t hash = 0;
    if (bucket_count == 0) return 0;
    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (unsigned char)*c;
        hash ^= (hash >> 24) & 0xF0;
        hash &= 0x0FFFFFFF;
    }
    for (uint32_t index = buckets[hash % bucket_count]; index; index = chain[index])
        if (is_definition(t, index, name)) return index;
    return 0;
}

uintptr_t kpti_elf_symbol(const kpti_elf_object *object, const char *name)
{
    tables t;
    uint32_t index;
    if (!find_tables(object, &t)) return 0;
    index = t.gnu_hash ? find_gnu(&t, name) : find_sysv(&t, name);
    return index ? object->base + t.symbols[index].st_value : 0;
}

typedef struct walk {
    int (*visit)(const kpti_elf_object *object, void *ctx);
    void *ctx;
} walk;

static int walk_one(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const walk *w = ctx;
    kpti_elf_object object = {info->dlpi_name ? info->dlpi_name : "", info->dlpi_addr, NULL};
    (void)size;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            object.dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return w->visit(&object, w->ctx);
}

void kpti_elf_walk(int (*visit)(const kpti_elf_object *object, void *ctx), void *ctx)
{
    walk w = {visit, ctx};
    (void)dl_iterate_phdr(walk_one, &w);
}
