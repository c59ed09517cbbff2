/* report_reader.h: reads a report's section of a trace back, strictly. */
#ifndef REPORT_READER_H
#define REPORT_READER_H

#include "tests/writers/strict_json.h"
#include "tests/writers/tape.h"

struct report_note {
    uint64_t tid;
    std::string name;
    int64_t ns;
};

struct report_more {
    uint64_t line, flags;
    std::vector<uint64_t> collection;
};

/* Times are Unix times. Throws if the report is inconsistent. */
struct report_trace {
    explicit report_trace(const std::string &html);
    std::vector<seen> calls; /* sorted */
    std::vector<seen> spans; /* between the calls */
    std::vector<report_note> marks, values;
    std::vector<report_note> resumes;        /* the task's name, and when its call opened */
    std::map<std::string, report_more> more; /* of calls that have more fields, by name */
    json text;
};

#endif
