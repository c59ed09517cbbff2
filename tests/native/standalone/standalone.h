/* standalone.h: a session in a folder of its own, and what it wrote there. */
#ifndef STANDALONE_H
#define STANDALONE_H

#include "hosts/standalone/session/session.h"
#include "hosts/standalone/session/session_background.h"
#include "hosts/standalone/session/session_export.h"
#include "hosts/standalone/session/session_gpu.h"
#include "hosts/standalone/session/session_notes.h"
#include "hosts/standalone/session/session_queries.h"
#include "tests/fixtures/readers/strict_json.h"
#include "tests/fixtures/scratch.h"

inline const char plugin[] = KPT_PLUGIN_PATH;
inline const char sample[] = KPT_SAMPLE_PATH;

class Standalone : public Scratch
{
  protected:
    Standalone()
    {
        KPT_INIT(&args);
        options.gpu = KPTI_GPU_OFF; /* the sample has one where the machine has */
    }
    ~Standalone() override
    {
        kpti_session_free(session);
    }

    kpt_status start(const char *which, uint32_t flags = 0)
    {
        options.flags = flags;
        return kpti_session_start(which, &args, &options, &session, &error);
    }
    void start_and_stop(const char *which, uint32_t flags = 0)
    {
        ASSERT_EQ(start(which, flags), KPT_OK) << error.text;
        ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK) << error.text;
    }
    kpt_status write(const std::string &file)
    {
        return kpti_session_write(session, file.c_str(), &watch, &count, &error);
    }
    bool error_has(const std::string &part) const
    {
        return std::string(error.text).find(part) != std::string::npos;
    }
    json trace() const
    {
        return read_json(content("t.json"));
    }
    /* The complete events of the trace. */
    std::vector<json> calls() const
    {
        std::vector<json> found;
        json whole = trace();
        for (const json &event : whole["traceEvents"].items)
            if (event["ph"].text == "X") found.push_back(event);
        return found;
    }

    kpt_tracer_args args;
    kpti_session_options options = {};
    kpti_session_watch watch = {};
    kpti_session *session = nullptr;
    kpti_session_count count = {};
    kpti_session_error error = {};
};

#endif
