#include "hosts/torch/exporter/native_memory.h"

static void put(const kpti_torch_memory *memory, uint32_t pid, kpti_chrome_events *e)
{
    const int is_out = (memory->flags & KPTI_TORCH_OUT_OF_MEMORY) != 0;
    char *at = kpti_out_reserve(e->out, KPTI_CHROME_MAX_REST);
    at = KPTI_PUT(at, ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"");
    at = is_out ? KPTI_PUT(at, "[OutOfMemory]") : KPTI_PUT(at, "[memory]");
    at = kpti_put_u64(KPTI_PUT(at, "\",\"pid\":"), pid);
    at = kpti_put_u64(KPTI_PUT(at, ",\"tid\":"), memory->os_tid);
    at = kpti_put_us_between(KPTI_PUT(at, ",\"ts\":"), e->base_ns, memory->at_ns);
    at = kpti_put_u64(KPTI_PUT(at, ",\"args\":{\"Total Reserved\":"), memory->total_reserved);
    at = kpti_put_u64(KPTI_PUT(at, ",\"Total Allocated\":"), memory->total_allocated);
    at = kpti_put_i64(KPTI_PUT(at, ",\"Bytes\":"), memory->size);
    at = kpti_put_i64(KPTI_PUT(at, ",\"Device Id\":"), memory->device_index);
    at = kpti_put_i64(KPTI_PUT(at, ",\"Device Type\":"), memory->device_type);
    if (!is_out) at = kpti_put_u64(KPTI_PUT(at, ",\"Addr\":"), memory->address);
    at = kpti_put_u64(KPTI_PUT(at, ",\"finished\":false,\"Ev Idx\":"), e->next_index++);
    kpti_out_wrote(e->out, KPTI_PUT(at, "}}"));
}

void kpti_native_put_memory(const kpti_torch_recording *recording, uint32_t pid, int64_t before_ns,
                            uint64_t *next, kpti_chrome_events *events)
{
    for (; *next < recording->memory_count && recording->memory[*next].at_ns < before_ns; ++*next)
        put(&recording->memory[*next], pid, events);
}
