/* writing.h: writes tapes in any format, and reads them back. */
#ifndef WRITING_H
#define WRITING_H

#include "writers/chrome/chrome_json.h"
#include "writers/flame/collapsed.h"
#include "writers/flame/speedscope.h"
#include "writers/format/format.h"
#include "writers/formats.h"
#include "writers/perfetto/perfetto.h"
#include "writers/report/report.h"
#include "writers/writer.h"

#include "tests/writers/readers.h"
#include "tests/writers/report_reader.h"
#include "tests/writers/scratch.h"

class Writing : public Scratch
{
  protected:
    Writing()
    {
        options.pid = 42;
        options.base_ns = 500;
    }
    ~Writing() override
    {
        kpti_notes_free(&notes);
    }

    /* The file's content, written as T.suffix. */
    std::string write(const kpti_format &format, tape &t, uint32_t extra_bytes = 0)
    {
        parcel p = t.delivery(format.order, extra_bytes);
        return write(format, p);
    }
    std::string write(const kpti_format &format, parcel &p)
    {
        std::string name = std::string("t") + format.suffix;
        kpti_writer *writer = nullptr;
        options.notes = &notes;
        EXPECT_EQ(kpti_writer_open(&format, path(name).c_str(), &options, &writer, &result),
                  KPT_OK);
        if (!writer) return "";
        kpt_status status = kpti_writer_batch(writer, p.batch());
        EXPECT_EQ(status, KPT_OK);
        EXPECT_EQ(kpti_writer_close(writer, status, nullptr, &result), KPT_OK) << result.text;
        EXPECT_EQ(result.bytes, content(name).size());
        return content(name);
    }
    json chrome(tape &t)
    {
        return read_json(write(kpti_format_chrome, t));
    }
    perfetto_trace perfetto(tape &t)
    {
        return perfetto_trace(write(kpti_format_perfetto, t));
    }
    std::vector<seen> speedscope(tape &t)
    {
        return speedscope_calls(read_json(write(kpti_format_speedscope, t)), options.base_ns);
    }
    report_trace report(tape &t)
    {
        return report_trace(write(kpti_format_report, t));
    }
    /* Lines as stack and number. */
    std::map<std::string, uint64_t> collapsed(tape &t)
    {
        std::map<std::string, uint64_t> lines;
        std::istringstream text(write(kpti_format_collapsed, t));
        for (std::string line; std::getline(text, line);) {
            size_t space = line.rfind(' ');
            EXPECT_TRUE(
                lines.emplace(line.substr(0, space), std::stoull(line.substr(space + 1))).second)
                << line;
        }
        return lines;
    }

    /* Adds a note, made on the thread with that index. */
    uint32_t note(uint32_t what, const std::string &name, int64_t ns, uint32_t partner = 0,
                  uint64_t flow = 0, uint32_t thread = 0, const std::string &args = "")
    {
        kpti_note n = {};
        n.what = what;
        n.partner = partner;
        n.name = {name.data(), name.size()};
        n.args = {args.data(), args.size()};
        n.flow = flow;
        n.ns = ns;
        n.os_tid = tape::FIRST_TID + thread;
        n.value = 2.5;
        return kpti_notes_add(&notes, &n);
    }

    kpti_writer_options options = {};
    kpti_writer_result result = {};
    kpti_notes notes = {};
};

#endif
