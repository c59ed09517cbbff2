/* unpickle.h: reads what viewers of memory snapshots can: protocol 4 with the opcodes that they know, and
 * nothing else. */
#ifndef KPT_TEST_UNPICKLE_H
#define KPT_TEST_UNPICKLE_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct pickled {
    enum { NONE, BOOL, INT, TEXT, LIST, TUPLE, DICT } kind = NONE;
    uint64_t number = 0;
    std::string text;
    std::vector<std::shared_ptr<pickled>> items;
    std::map<std::string, std::shared_ptr<pickled>> fields;

    /* A field, or an item; an empty value where there is none. */
    const pickled &operator[](const std::string &name) const;
    const pickled &operator[](size_t i) const;
};

/* NULL, and WHY, where a viewer would not read it. */
std::shared_ptr<pickled> unpickle(const std::string &bytes, std::string *why);

#endif
