#include "python_tracer/state/code_filter.h"

#include <fnmatch.h>
#include <limits.h>

kpt_status kpti_filters_copy(const kpti_env *env, const kpt_tracer_args *args, kpti_filters *out)
{
    const char *theirs = (const char *)args->filters;
    size_t bytes = args->filter_count * sizeof(kpt_filter);
    char *text;
    memset(out, 0, sizeof *out);
    if (!args->filter_count) return KPT_OK;
    for (uint32_t i = 0; i < args->filter_count; i++) {
        kpt_filter f;
        memcpy(&f, theirs + (size_t)i * args->filter_stride, sizeof f); /* V1 is the only version */
        bytes += f.pattern.size + 1;
    }
    out->items = kpti_alloc(env, bytes);
    if (!out->items) return KPT_E_MEMORY;
    out->bytes = bytes;
    out->count = args->filter_count;
    text = (char *)(out->items + out->count);
    for (uint32_t i = 0; i < out->count; i++) {
        kpt_filter *f = &out->items[i];
        memcpy(f, theirs + (size_t)i * args->filter_stride, sizeof *f);
        memcpy(text, f->pattern.data, f->pattern.size);
        f->pattern.data = text;
        text += f->pattern.size + 1; /* the allocator zeroes memory, so the pattern ends in NUL */
        out->any_include |= f->action == KPT_FILTER_INCLUDE;
        out->any_module |= f->match == KPT_MATCH_MODULE;
    }
    return KPT_OK;
}

void kpti_filters_free(const kpti_env *env, kpti_filters *filters)
{
    kpti_free(env, filters->items, filters->bytes);
    memset(filters, 0, sizeof *filters);
}

static int is_prefix(kpt_str prefix, kpt_str of)
{
    return prefix.size <= of.size && memcmp(prefix.data, of.data, prefix.size) == 0;
}

/* "json" matches the module json and its submodules, but not jsonschema. */
static int is_module(kpt_str pattern, kpt_str module)
{
    return is_prefix(pattern, module) &&
           (module.size == pattern.size || module.data[pattern.size] == '.');
}

static int is_glob(kpt_str pattern, kpt_str file)
{
    char path[PATH_MAX];
    if (file.size >= sizeof path) return 0;
    if (file.size) memcpy(path, file.data, file.size);
    path[file.size] = 0;
    return fnmatch(pattern.data, path, 0) == 0;
}

static int matches(const kpt_filter *f, kpt_str file, kpt_str module)
{
    switch (f->match) {
    case KPT_MATCH_FILE_PREFIX:
        return is_prefix(f->pattern, file);
    case KPT_MATCH_MODULE:
        return is_module(f->pattern, module);
    default:
        return is_glob(f->pattern, file);
    }
}

int kpti_filters_allow(const kpti_filters *filters, kpt_str file, kpt_str module)
{
    for (uint32_t i = filters->count; i > 0; i--)
        if (matches(&filters->items[i - 1], file, module))
            return filters->items[i - 1].action == KPT_FILTER_INCLUDE;
    return !filters->any_include;
}
