#include "python_tracer/capture/location_cache.h"

#include "core/callstacks/code_location.h"
#include "python_tracer/frames/function_naming.h"
#include "python_tracer/frames/name_running_code.h"
#include "python_tracer/frames/named_code.h"

static uint32_t intern(uint32_t function, kpti_instruction at)
{
    kpti_code_location location = {.kind = KPT_SYMBOL_PYTHON,
                                   .where = (uint64_t)(int64_t)at.offset};
    int lines[2];
    int columns[2];
    if (!function) return 0;
    kpti_code_position(at.code, at.offset, lines, columns);
    atomic_init(&location.function, function);
    location.line = lines[0] > 0 ? (uint32_t)lines[0] : 0;
    location.end_line = lines[1] > 0 ? (uint32_t)lines[1] : location.line;
    location.column = columns[0] >= 0 ? (uint32_t)columns[0] : KPT_NO_COLUMN;
    location.end_column = columns[1] >= 0 ? (uint32_t)columns[1] : KPT_NO_COLUMN;
    return kpti_code_location_intern(&location);
}

/* Returns the function id of CODE. Python allocates memory when it stores the id in the code object. */
static uint32_t name(PyCodeObject *code, int attached, int no_objects)
{
    if (attached && (!no_objects || kpti_name_is_kept(code))) return kpti_name_code(code);
    return kpti_name_code_anew(code);
}

uint32_t kpti_location_find_slow(kpti_location_cache *cache, kpti_instruction at, kpti_gil_state s,
                                 int no_objects, int *kept)
{
    const int attached = s == KPTI_ATTACHED;
    const uint32_t version = kpti_code_version(at.code);
    const uint32_t function = name(at.code, attached, no_objects);
    const uint32_t location = intern(function, at);
    const int is_kept =
        version || (!KPTI_CODES_HAVE_VERSIONS &&
                    (attached ? kpti_name_is_kept(at.code) : kpti_named_has(function, at.code)));
    if (location && is_kept) {
        kpti_known_place *slot = kpti_location_slot(cache, at);
        memmove(slot + 1, slot, (KPTI_PLACE_WAYS - 1) * sizeof *slot);
        *slot = (kpti_known_place){at.code, at.offset, location, version};
    } else {
        *kept = 0;
        if (s == KPTI_DETACHED) kpti_named_ask();
    }
    return location;
}
