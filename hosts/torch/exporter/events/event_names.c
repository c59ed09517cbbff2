#include "hosts/torch/exporter/events/event_names.h"

#include <stdio.h>

uint32_t kpti_event_names_text(kpti_event_names *names, kpt_str text)
{
    uint64_t key = kpti_text_key(text);
    for (;; key++) { /* a text whose key another one has gets the next */
        uint32_t *const number = kpti_u64_map_at(&names->number_of, key);
        char *copy;
        if (!number) return 0;
        if (*number) {
            const kpt_str known = names->texts[*number];
            if (known.size == text.size && memcmp(known.data, text.data, text.size) == 0)
                return *number;
            continue;
        }
        if (kpti_array_reach(&names->heap, &names->texts, &names->capacity, names->count + 1,
                             sizeof *names->texts) != KPT_OK)
            return 0;
        copy = kpti_heap_take(&names->heap, (size_t)text.size + 1);
        if (!copy) return 0;
        if (text.size) memcpy(copy, text.data, (size_t)text.size);
        *number = ++names->count;
        names->texts[*number] = (kpt_str){copy, text.size};
        return *number;
    }
}

/* Returns the number of a Python function's name at LINE, or at its own line if that is 0. */
static uint32_t function_at(kpti_event_names *names, const kpti_torch_names *torch, uint32_t index,
                            uint32_t line)
{
    const kpt_name *const name = &torch->raw[index];
    const kpt_str file = kpti_torch_trimmed(torch->recording, name->file);
    const size_t needed = (size_t)(file.size + name->function.size) + 32;
    char *at;
    if (!kpti_array_reserve(&names->heap, &names->buffer, &names->buffer_capacity, needed, 1))
        return 0;
    if (!line) line = torch->names.items[index].note;
    at = kpti_put_bytes(names->buffer, file.data, (size_t)file.size);
    at += sprintf(at, "(%u): ", line);
    at = kpti_put_bytes(at, name->function.data, (size_t)name->function.size);
    return kpti_event_names_text(names, (kpt_str){names->buffer, (uint64_t)(at - names->buffer)});
}

/* Returns the number of the name of the module with ANSWER, or 0 if it has none. */
static uint32_t module_of(kpti_event_names *names, const kpti_torch_names *torch, uint64_t answer)
{
    const kpti_torch_recording *const r = torch->recording;
    char text[KPTI_CHROME_MAX_NAME];
    uint64_t number = 0;
    uint64_t size;
    uint32_t found;
    uint32_t *known = kpti_u64_map_at(&names->of_module, answer);
    if (known && *known) return *known;
    size = r->name_of(r->ctx, answer, text, sizeof text, &number);
    if (!size || !known) return 0;
    found =
        kpti_event_names_text(names, (kpt_str){text, size < sizeof text ? size : sizeof text - 1});
    if (!found || kpti_array_reach(&names->heap, &names->module_number, &names->module_capacity,
                                   found, sizeof *names->module_number) != KPT_OK)
        return 0;
    names->module_number[found] = (uint32_t)number + 1;
    *known = found;
    return found;
}

uint32_t kpti_event_names_call(kpti_event_names *names, kpti_torch_names *torch,
                               const kpt_thread *thread, const kpt_activity *a)
{
    const int is_python = a->kind == KPT_KIND_PYTHON && kpti_torch_is_python(torch, a->name);
    uint32_t line;
    uint32_t number;
    uint32_t *known;
    if (is_python && a->flags & KPT_ACTIVITY_WATCHED && a->value0) {
        number = module_of(names, torch, a->value0);
        if (number) return number;
    }
    line = kpti_torch_line(torch, thread, a);
    known = kpti_u64_map_at(&names->of_call, (uint64_t)a->name << 32 | line);
    if (!known) return 0;
    if (*known) return *known;
    if (is_python)
        number = function_at(names, torch, a->name, line);
    else
        number = kpti_event_names_text(names, kpti_shown_name(&torch->raw[a->name]));
    return *known = number;
}

void kpti_event_names_free(kpti_event_names *names)
{
    for (uint32_t i = 1; i <= names->count; i++)
        free((void *)(uintptr_t)names->texts[i].data);
    free(names->texts);
    free(names->module_number);
    free(names->buffer);
    kpti_u64_map_free(&names->number_of);
    kpti_u64_map_free(&names->of_call);
    kpti_u64_map_free(&names->of_module);
}
