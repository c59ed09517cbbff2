#include "writers/format/stats_text.h"

#include "writers/encode/json_text.h"

static const struct counter {
    const char *member;
    size_t offset;
} counters[] = {
    {",\"events\":", offsetof(kpt_stats, events)},
    {",\"events dropped\":", offsetof(kpt_stats, events_dropped)},
    {",\"events repaired\":", offsetof(kpt_stats, events_repaired)},
    {",\"events filtered\":", offsetof(kpt_stats, events_filtered)},
    {",\"threads\":", offsetof(kpt_stats, threads)},
    {",\"threads unreached\":", offsetof(kpt_stats, threads_unreached)},
    {",\"functions disabled\":", offsetof(kpt_stats, functions_disabled)},
};
enum { COUNTERS = sizeof counters / sizeof counters[0] };

char *kpti_put_stats(char *at, const kpt_stats *stats)
{
    for (int i = 0; stats && i < COUNTERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)stats + counters[i].offset, sizeof value);
        at = kpti_put_bytes(at, counters[i].member, strlen(counters[i].member));
        at = kpti_put_u64(at, value);
    }
    return at;
}
