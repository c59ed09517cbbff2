/* readers.h: reads the files of each format back, strictly, as the calls and notes that they hold. */
#ifndef READERS_H
#define READERS_H

#include "tests/writers/strict_json.h"
#include "tests/writers/tape.h"

/* --- protocol buffers -------------------------------------------------------------------------- */

/* A message of any kind: its fields by number, each value in its wire form. */
struct wire {
    struct value {
        uint64_t number = 0;
        std::string bytes;
    };
    std::map<uint32_t, std::vector<value>> fields;

    /* Throws if BYTES are not a message. */
    explicit wire(const std::string &bytes);
    bool has(uint32_t field) const
    {
        return fields.count(field) != 0;
    }
    /* Returns the field's first value; 0 or empty if it has none. */
    uint64_t number(uint32_t field) const
    {
        return has(field) ? fields.at(field)[0].number : 0;
    }
    std::string text(uint32_t field) const
    {
        return has(field) ? fields.at(field)[0].bytes : "";
    }
    wire message(uint32_t field) const
    {
        return wire(text(field));
    }
    std::vector<wire> messages(uint32_t field) const;
};

/* --- traces ------------------------------------------------------------------------------------ */

struct note_seen {
    std::string track; /* of the thread, counter or span */
    std::string name;
    int64_t start_ns;
    int64_t end_ns;
    std::map<std::string, std::string> args; /* annotations; the user's are "args" */
    std::vector<uint64_t> flows;
    double value;
};

/* The content of a Perfetto trace; times are Unix times. Throws if packets are inconsistent. */
struct perfetto_trace {
    explicit perfetto_trace(const std::string &bytes);
    std::vector<seen> calls; /* sorted; those of no category */
    std::map<std::string, std::map<std::string, std::string>> call_args; /* by name */
    std::map<std::string, std::string> sources;                          /* "file:line" by name */
    std::vector<note_seen> spans, marks, values;
    std::vector<std::string> threads;
    std::string process;
};

/* The complete events of a category of a Chrome trace, sorted, with Unix times. */
std::vector<seen> chrome_calls(const json &trace, const std::string &category = "python_function");

/* Returns all frames of a speedscope file, sorted, with times since BASE_NS. Checks the file against its
 * schema, and throws if it is invalid. */
std::vector<seen> speedscope_calls(const json &file, int64_t base_ns = 0);

#endif
