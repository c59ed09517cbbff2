/* struct_rows.cc: the structs of the contract and the calls that take them, one row for each. */
#include "tests/abi/plugin_unit/struct_rows.h"

std::ostream &operator<<(std::ostream &out, const row &r)
{
    return out << r.name;
}

const std::vector<row> &struct_rows()
{
    static const std::vector<row> rows = [] {
        std::vector<row> all = tracer_rows();
        for (const row &r : object_rows())
            all.push_back(r);
        return all;
    }();
    return rows;
}
