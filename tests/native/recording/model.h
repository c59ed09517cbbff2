// model.h: computes the expected delivery in the slow and obvious way: every event by itself, every call as
// its own object, orders by sorting. Shares no code with replay.
#ifndef MODEL_H
#define MODEL_H

#include "tests/native/recording/delivered.h"

struct Expected {
    std::vector<kpt_activity> activities;
    uint64_t repairs = 0;
};

Expected model(Recording &recording, const Taking &taking);

// Returns the first difference as a text; empty if there is none.
std::string difference(const Expected &expected, const Taken &taken);

#endif
