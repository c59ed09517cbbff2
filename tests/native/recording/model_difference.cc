#include <algorithm>
#include <cstring>
#include <sstream>

#include "tests/native/recording/model.h"

std::string difference(const Expected &expected, const Taken &taken)
{
    std::ostringstream out;
    const auto fields = [](const kpt_activity &a) {
        std::ostringstream line;
        line << "id " << a.id << " parent " << a.parent_id << " " << a.start_ns << "-" << a.end_ns
             << " thread " << a.thread << " name " << a.name << " kind " << a.kind << " phase "
             << a.phase << " flags " << a.flags << " line " << a.line << " depth " << a.depth
             << " values " << a.value0 << "," << a.value1 << "," << a.value2;
        return line.str();
    };
    const size_t count = std::min(expected.activities.size(), taken.activities.size());
    for (size_t i = 0; i < count; i++) {
        if (!memcmp(&expected.activities[i], &taken.activities[i], sizeof(kpt_activity))) continue;
        const std::string want = fields(expected.activities[i]);
        const std::string got = fields(taken.activities[i]);
        out << "activity " << i << ":\n  expected " << want << "\n  got      " << got;
        return out.str();
    }
    if (expected.activities.size() != taken.activities.size())
        out << expected.activities.size() << " expected, but " << taken.activities.size();
    else if (expected.repairs != taken.repairs)
        out << expected.repairs << " repairs expected, but " << taken.repairs;
    return out.str();
}
