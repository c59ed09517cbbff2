/* strict_json.h: a JSON reader for tests that accepts only RFC 8259: no trailing comma, no bare control
 * character, no lone surrogate, no duplicate key, valid UTF-8 only. */
#ifndef STRICT_JSON_H
#define STRICT_JSON_H

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct json {
    enum kind { NOTHING, TRUTH, NUMBER, STRING, ARRAY, OBJECT };
    kind is = NOTHING;
    std::string text; /* a string's characters, or a number or truth as written */
    std::vector<json> items;
    std::map<std::string, json, std::less<>> members;

    /* A member, or nothing. */
    const json &operator[](std::string_view name) const;
    bool has(std::string_view name) const
    {
        return members.find(name) != members.end();
    }
    double number() const
    {
        return std::stod(text);
    }
};

/* Returns whether BYTES are valid UTF-8. */
bool is_utf8(const std::string &bytes);

/* Reads all of TEXT. Throws std::runtime_error with the position if TEXT is not JSON. */
json read_json(const std::string &text);

#endif
