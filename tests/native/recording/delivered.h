// delivered.h: a copy of a delivery, and the checks that hold for every delivery.
#ifndef DELIVERED_H
#define DELIVERED_H

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/native/recording/recording_builder.h"

struct Taken {
    kpt_status status = KPT_OK;
    std::string error;
    uint64_t repairs = 0;
    std::vector<kpt_activity> activities; // in the order of delivery, except for points
    struct Point {
        kpt_activity activity;
        size_t after; // so many activities
    };
    std::vector<Point> points;
    std::map<uint32_t, kpt_name> names;
    std::map<uint32_t, std::string> inputs; // by the index of their name
    std::map<uint32_t, kpt_thread> threads;
    uint32_t batches = 0;
    uint32_t largest = 0;
    uint64_t converts = 0;          // calls of the converter
    std::vector<std::string> wrong; // rules that the delivery broke

    const kpt_activity &only(uint32_t function) const; // the only activity of that function
    std::string text() const;                          // "f1[10-90] f2[20-30]"
    std::string points_text() const; // "7@25 in f2": number, time and parent's function
};

// The parameters of a delivery. The defaults deliver in order THREAD, with a tick of a nanosecond.
struct Taking {
    uint32_t order = KPT_ORDER_THREAD;
    uint32_t flags = 0; // KPT_DELIVER_*
    uint32_t batch_size = 0;
    int64_t end_ns = 0;
    kpt_convert_fn convert = nullptr; // checked for its ticks, too
    uint32_t stop_after = UINT32_MAX; // batches, then the sink answers 1234
    const kpti_env *env = nullptr;
};

Taken take(Recording &recording, Taking taking = {});
// The same of whatever delivers.
using Deliver = std::function<kpt_status(const kpt_delivery *, kpti_error *)>;
Taken take_from(const Deliver &deliver, const Taking &taking);
// Takes a delivery and checks everything that holds for all deliveries.
Taken take_checked(Recording &recording, Taking taking = {});

// Each broken rule of the ABI's as a line of text.
std::vector<std::string> broken_rules(const Taken &taken, const Taking &taking);

#endif
