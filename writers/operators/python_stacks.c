#include "writers/operators/python_stacks.h"

#include "core/base/assert.h"
#include "core/base/batch_records.h"
#include "writers/annotations/library_file.h"

typedef struct kpti_stack_name {
    kpt_str
        shown; /* the tracer owns the text of a function; that of a range ends with the delivery */
    uint32_t is_library;
} stack_name;

typedef struct kpti_stack_node {
    uint32_t shown;      /* the function that the stack is shown as */
    uint32_t is_library; /* all its functions are a library's */
} stack_node;

void kpti_python_stacks_init(kpti_python_stacks *s, const kpti_heap *heap)
{
    *s = (kpti_python_stacks){.heap = *heap, .node_count = 1, .node_of = {.heap = *heap}};
}

void kpti_python_stacks_free(kpti_python_stacks *s)
{
    kpti_heap_give(&s->heap, s->names, s->name_capacity * sizeof *s->names);
    kpti_heap_give(&s->heap, s->nodes, s->node_capacity * sizeof *s->nodes);
    kpti_u64_map_free(&s->node_of);
}

kpt_status kpti_python_stacks_name(kpti_python_stacks *s, const kpt_name *name)
{
    kpt_status status =
        kpti_array_reach(&s->heap, &s->names, &s->name_capacity, name->index, sizeof *s->names);
    if (status == KPT_OK)
        s->names[name->index] =
            (stack_name){kpti_shown_name(name), (uint32_t)kpti_is_library_file(name->file)};
    return status;
}

static stack_node make_node(const kpti_python_stacks *s, uint32_t caller, uint32_t function)
{
    const int is_library = function < s->name_capacity && s->names[function].is_library;
    if (is_library && caller && !s->nodes[caller].is_library) return s->nodes[caller];
    return (stack_node){function, (uint32_t)is_library};
}

kpt_status kpti_python_stacks_find(kpti_python_stacks *s, uint32_t caller, uint32_t function,
                                   uint32_t *out)
{
    uint32_t *known = kpti_u64_map_at(&s->node_of, (uint64_t)caller << 32 | function);
    kpt_status status;
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        status = kpti_array_reach(&s->heap, &s->nodes, &s->node_capacity, s->node_count,
                                  sizeof *s->nodes);
        if (status != KPT_OK) return status;
        s->nodes[s->node_count] = make_node(s, caller, function);
        *known = s->node_count++;
    }
    *out = *known;
    return KPT_OK;
}

uint32_t kpti_python_stacks_function(const kpti_python_stacks *s, uint32_t stack)
{
    kpti_assert(stack && stack < s->node_count);
    return s->nodes[stack].shown;
}

kpt_str kpti_python_stacks_text(const kpti_python_stacks *s, uint32_t name)
{
    return name < s->name_capacity ? s->names[name].shown : (kpt_str){"", 0};
}
