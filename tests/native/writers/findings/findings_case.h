/* findings_case.h: a test of what stands out in a recording that is made by hand. */
#ifndef FINDINGS_CASE_H
#define FINDINGS_CASE_H

#include <gtest/gtest.h>

#include "abi/kpt_text.h"
#include "tests/fixtures/batches/batches.h"
#include "tests/fixtures/batches/gpu_events.h"
#include "tests/fixtures/readers/strict_json.h"
#include "writers/findings/findings.h"

static const int64_t MS = 1000000;
static const char *const LIBRARY = "/usr/lib/python3.12/";

class Findings : public testing::Test
{
  protected:
    ~Findings() override
    {
        kpti_notes_free(&notes);
        kpti_gpu_log_free(&gpu);
    }
    void SetUp() override
    {
        kpti_gpu_log_init(&gpu, &malloc_heap);
        KPT_INIT(&stats);
    }
    uint32_t python(const std::string &function, const std::string &file = "/srv/app/work.py")
    {
        return t.name(file + "(7): " + function, file, 7, function);
    }
    uint32_t library(const std::string &file, const std::string &function)
    {
        return python(function, LIBRARY + file);
    }
    uint32_t built_in(const std::string &function, const std::string &type = "")
    {
        return t.name(type.empty() ? "<built-in function " + function + ">"
                                   : "<built-in method " + function + " of " + type + " object>",
                      "", 0, function);
    }
    /* A call without calls in it. */
    void call(uint32_t thread, uint32_t name, int64_t at, int64_t ns,
              uint16_t kind = KPT_KIND_PYTHON)
    {
        t.enter(thread, name, at).kind = kind;
        t.leave(thread, at + ns);
    }
    uint32_t task(const char *name, const char *coroutine)
    {
        kpti_note n = {};
        n.what = KPTI_NOTE_TASK;
        n.name = kpt_str_of(name);
        n.args = kpt_str_of(coroutine);
        return kpti_notes_add(&notes, &n);
    }
    kpt_status write(const kpti_heap &heap, parcel &p, kpti_text_builder *out)
    {
        const kpti_findings_rest rest = {&stats, &gpu, nullptr};
        kpti_findings *findings = nullptr;
        kpt_status status = kpti_findings_open(&heap, &notes, &findings);
        if (status == KPT_OK) status = kpti_findings_batch(findings, p.batch());
        if (status == KPT_OK) status = kpti_findings_write(findings, &rest, out);
        kpti_findings_free(findings);
        return status;
    }
    json found()
    {
        kpti_text_builder out = {};
        parcel p = t.delivery(KPT_ORDER_THREAD, 8);
        EXPECT_EQ(write(malloc_heap, p, &out), KPT_OK);
        json made = read_json(std::string(out.text, out.size));
        kpti_text_builder_free(&out);
        return made;
    }
    static std::string kinds(const json &made)
    {
        std::string all;
        for (const json &finding : made["findings"].items)
            all += (all.empty() ? "" : " ") + finding["kind"].text;
        return all;
    }
    std::string kinds()
    {
        return kinds(found());
    }
    static double evidence(const json &made, const char *member, size_t finding = 0)
    {
        return made["findings"].items.at(finding)["evidence"][member].number();
    }

    kpti_heap malloc_heap = {};
    kpti_notes notes = {};
    kpti_gpu_log gpu;
    kpt_stats stats = {};
    tape t;
};

#endif
