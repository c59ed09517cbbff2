/* gpu_events.h: logs of GPUs for tests. */
#ifndef GPU_EVENTS_H
#define GPU_EVENTS_H

#include <random>
#include <string>

#include "abi/kpt_text.h"
#include "writers/gpu/gpu_log.h"

/* Adds an event, for example a kernel, with the stack of two frames that launched it; NAME is "" for an
 * event without a name. */
inline kpt_status add_gpu(kpti_gpu_log &log, uint32_t kind, const std::string &name, int64_t from,
                          int64_t to, uint64_t correlation = 0, uint32_t line = 0)
{
    kpt_gpu_event e = {};
    uint32_t stack = 0;
    if (line) {
        kpti_gpu_node outer = {0, 0, 0, 1}, inner = {0, 0, 0, line};
        kpt_status status = kpti_gpu_log_text(&log, kpt_str_of("main"), &outer.function);
        if (status == KPT_OK) status = kpti_gpu_log_text(&log, kpt_str_of("a.py"), &outer.file);
        if (status == KPT_OK) status = kpti_gpu_log_text(&log, kpt_str_of("f"), &inner.function);
        inner.file = outer.file;
        if (status == KPT_OK) status = kpti_gpu_log_node(&log, &outer, &inner.caller);
        if (status == KPT_OK) status = kpti_gpu_log_node(&log, &inner, &stack);
        if (status != KPT_OK) return status;
    }
    e.kind = static_cast<uint16_t>(kind);
    e.name = {name.data(), name.size()};
    e.start_ns = from;
    e.end_ns = to;
    e.correlation = correlation;
    e.stream = 7;
    e.os_tid = 100;
    return kpti_gpu_log_add(&log, &e, stack);
}

inline kpt_status add_gpu_device(kpti_gpu_log &log)
{
    kpt_gpu_device d = {};
    d.name = kpt_str_of("A \"GPU\"");
    d.multiprocessors = 2;
    d.warp_size = 32;
    d.memory_bytes = UINT64_C(1) << 40;
    return kpti_gpu_log_device(&log, &d);
}

/* Returns an event with random fields, including the largest numbers. */
inline kpt_gpu_event any_gpu_event(std::mt19937_64 &random)
{
    kpt_gpu_event e = {};
    auto word = [&]() -> uint64_t {
        switch (random() % 6) {
        case 0:
            return 0;
        case 1:
            return UINT64_MAX;
        case 2:
            return random() % 100;
        case 3:
            return UINT32_MAX;
        default:
            return random();
        }
    };
    auto small = [&] { return static_cast<uint32_t>(word()); };
    e = {static_cast<uint16_t>(word()),
         static_cast<uint16_t>(word()),
         small(),
         small(),
         small(),
         static_cast<int64_t>(word()),
         static_cast<int64_t>(word()),
         word(),
         word(),
         word(),
         {nullptr, 0},
         {},
         word(),
         {small(), small(), small()},
         {small(), small(), small()},
         small(),
         small(),
         small(),
         small(),
         small(),
         small(),
         small(),
         small(),
         small(),
         small(),
         small(),
         small()};
    return e;
}

inline std::string gpu_name(const kpti_gpu_entry *e)
{
    return std::string(e->event.name.data, e->event.name.size);
}

#endif
