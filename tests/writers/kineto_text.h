/* kineto_text.h: a trace as Kineto writes it. */
#ifndef KINETO_TEXT_H
#define KINETO_TEXT_H

#include <string>

/* Returns a trace as Kineto writes it, with EVENTS before its last event, MEMBERS after the list, HEAD
 * before it, and DEVICES. */
inline std::string kineto(const std::string &events = "", const std::string &members = "",
                          const std::string &head = "", const std::string &devices = "")
{
    return " {\n    \"schemaVersion\": 1,\n    \"deviceProperties\": [\n" + devices + "    ],\n" +
           head +
           "    \"displayTimeUnit\": \"ms\",\n    \"baseTimeNanoseconds\": 1790857026000000000,\n"
           "    \"traceEvents\": [\n" +
           events +
           "  {\n    \"ph\": \"i\",\n    \n    \"s\": \"g\",\n    \"name\": \"Record Window "
           "End\",\n"
           "    \"pid\": \"\",\n    \"tid\": \"\",\n    \"ts\": 3865832816488.360\n    \n  }\n  "
           "],\n" +
           members + "\"traceName\": \"/tmp/t.json\" }";
}

#endif
