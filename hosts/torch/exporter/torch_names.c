#include "hosts/torch/exporter/torch_names.h"

/* Space for file, line and function. */
enum { NAME_ROOM = 2 * KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH + 256 };

static const kpti_fragment none = {NULL, 0, 0};

kpt_status kpti_torch_names_open(kpti_torch_names *n, const kpti_torch_recording *recording)
{
    n->recording = recording;
    n->name = malloc(NAME_ROOM);
    return n->name ? KPT_OK : KPT_E_MEMORY;
}

void kpti_torch_names_free(kpti_torch_names *n)
{
    free(n->raw);
    free(n->name);
    kpti_fragments_free(&n->names);
    kpti_fragments_free(&n->files);
    kpti_fragments_free(&n->modules);
}

/* --- functions -------------------------------------------------------------------------------- */

static int is_text(kpt_str text, const char *other)
{
    return text.size == strlen(other) && memcmp(text.data, other, (size_t)text.size) == 0;
}

kpt_str kpti_torch_trimmed(const kpti_torch_recording *r, kpt_str path)
{
    for (uint64_t i = 0; i < r->prefix_count; i++) {
        kpt_str prefix = r->prefixes[i];
        if (path.size >= prefix.size && memcmp(path.data, prefix.data, (size_t)prefix.size) == 0)
            return (kpt_str){path.data + prefix.size, path.size - prefix.size};
    }
    return path;
}

/* Returns the space for an escaped text, a line and some punctuation. */
static size_t escaped_capacity(kpt_str text)
{
    size_t size = text.size < KPTI_CHROME_MAX_NAME ? (size_t)text.size : KPTI_CHROME_MAX_NAME;
    return size * KPTI_JSON_MAX_GROWTH + (size_t)2 * KPTI_JSON_MAX_NUMBER;
}

/* Adds a Python function: file, line, name. A module's fresh code has line 0. */
static kpt_status take_function(kpti_torch_names *n, const kpt_name *name)
{
    uint32_t line = is_text(name->function, "<module>") ? 0 : name->first_line;
    kpt_status status;
    kpt_str file = kpti_torch_trimmed(n->recording, name->file);
    char *begin = kpti_fragments_reserve(&n->files, escaped_capacity(file));
    char *at = begin;
    size_t file_size;
    if (!begin) return KPT_E_MEMORY;
    at = kpti_chrome_escape(at, file);
    *at++ = '(';
    file_size = (size_t)(at - begin);
    status = kpti_fragments_set(&n->files, name->index, begin, file_size, name->first_line);
    if (status != KPT_OK) return status;
    begin = kpti_fragments_reserve(&n->names, file_size + escaped_capacity(name->function));
    if (!begin) return KPT_E_MEMORY;
    memcpy(begin, n->files.items[name->index].text, file_size);
    at = kpti_put_u64(begin + file_size, line);
    at = kpti_chrome_escape(KPTI_PUT(at, "): "), name->function);
    return kpti_fragments_set(&n->names, name->index, begin, (size_t)(at - begin), line);
}

kpt_status kpti_torch_names_take(kpti_torch_names *n, const kpt_name *name)
{
    kpt_status status =
        kpti_array_reach(&n->names.heap, &n->raw, &n->raw_capacity, name->index, sizeof *n->raw);
    if (status != KPT_OK) return status;
    n->raw[name->index] = *name;
    if (name->file.size) return take_function(n, name);
    return kpti_chrome_add_name(&n->names, name->index,
                                name->display.size ? name->display : name->function, 0);
}

/* --- calls ------------------------------------------------------------------------------------ */

kpti_fragment kpti_torch_module(kpti_torch_names *n, uint64_t answer)
{
    char text[KPTI_CHROME_MAX_NAME];
    const kpti_torch_recording *r = n->recording;
    uint64_t number = 0;
    uint64_t size;
    if (!answer || answer >= KPTI_MAX_FRAGMENTS) return none;
    if (answer < n->modules.capacity && n->modules.items[answer].text)
        return n->modules.items[answer];
    size = r->name_of(r->ctx, answer, text, sizeof text, &number);
    if (size >= sizeof text) size = sizeof text - 1;
    if (kpti_chrome_add_name(&n->modules, (uint32_t)answer, (kpt_str){text, size},
                             (uint32_t)number) != KPT_OK)
        return none;
    return n->modules.items[answer];
}

/* Returns the function's name with another line. */
static kpti_fragment with_line(kpti_torch_names *n, kpti_fragment name, kpti_fragment file,
                               uint32_t line)
{
    char digits[KPTI_JSON_MAX_NUMBER];
    size_t skipped = file.size + (size_t)(kpti_put_u64(digits, name.note) - digits);
    char *at = n->name;
    memcpy(at, name.text, file.size);
    at = kpti_put_u64(at + file.size, line);
    memcpy(at, name.text + skipped, name.size - skipped);
    return (kpti_fragment){n->name, (uint32_t)((size_t)(at - n->name) + name.size - skipped), line};
}

kpti_fragment kpti_torch_name_at(kpti_torch_names *n, uint32_t index, uint32_t line)
{
    kpti_fragment name = kpti_fragments_get(&n->names, index, kpti_chrome_no_name);
    if (!line || !kpti_torch_is_python(n, index)) return name;
    return with_line(n, name, n->files.items[index], line);
}

uint32_t kpti_torch_line(kpti_torch_names *n, const kpt_thread *thread, const kpt_activity *a)
{
    if (a->kind != KPT_KIND_PYTHON || !kpti_torch_is_python(n, a->name)) return 0;
    if (a->flags & KPT_ACTIVITY_BEGAN_BEFORE) {
        const kpti_torch_recording *r = n->recording;
        uint32_t then = r->open_line(r->ctx, thread, &n->raw[a->name], a->depth);
        if (then) return then; /* also if it is the function's first line */
    }
    return a->line != n->files.items[a->name].note ? a->line : 0;
}

kpti_torch_shown kpti_torch_show(kpti_torch_names *n, const kpt_thread *thread,
                                 const kpt_activity *a)
{
    uint32_t line = kpti_torch_line(n, thread, a);
    kpti_torch_shown result = {kpti_torch_name_at(n, a->name, line), none};
    if (a->kind != KPT_KIND_PYTHON || !kpti_torch_is_python(n, a->name)) return result;
    if (a->flags & KPT_ACTIVITY_WATCHED) result.module = kpti_torch_module(n, a->value0);
    if (result.module.size) result.name = result.module;
    return result;
}

/* --- the calls of a recording ----------------------------------------------------------------- */

kpt_status kpti_torch_deliver(const kpti_torch_recording *recording, uint32_t order, uint32_t flags,
                              kpt_batch_fn sink, void *sink_ctx)
{
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.order = order;
    delivery.flags = KPT_DELIVER_PARTS | flags;
    delivery.end_ns = recording->end_ns;
    delivery.convert = recording->convert;
    delivery.convert_ctx = recording->convert_ctx;
    delivery.sink = sink;
    delivery.sink_ctx = sink_ctx;
    return recording->tracer.ops->get_events(recording->tracer.self, &delivery);
}
