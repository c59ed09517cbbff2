/* parcel.h: batches for a sink, made by hand. Records have the size that a test chooses, with junk behind
 * the fields that this ABI has, as those of a newer plugin. */
#ifndef PARCEL_H
#define PARCEL_H

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "abi/kpt.h"

class parcel
{
  public:
    /* So many bytes follow each record. */
    explicit parcel(uint32_t extra_bytes = 0) : extra(extra_bytes) {}

    parcel &name(uint32_t index, const std::string &display, uint32_t first_line = 0,
                 const std::string &file = "")
    {
        kpt_name n = {};
        n.index = index;
        n.first_line = first_line;
        n.display = keep(display);
        n.file = keep(file);
        names.push_back(n);
        return *this;
    }
    parcel &thread(uint32_t index, uint64_t os_tid, const std::string &text)
    {
        kpt_thread t = {};
        t.index = index;
        t.os_tid = os_tid;
        t.name = keep(text);
        threads.push_back(t);
        return *this;
    }
    parcel &call(kpt_activity activity)
    {
        activities.push_back(activity);
        return *this;
    }

    /* A call of name 0 on thread 0. */
    static kpt_activity plain(uint64_t id, uint64_t parent, int64_t start_ns, int64_t end_ns)
    {
        kpt_activity a = {};
        a.id = id;
        a.parent_id = parent;
        a.start_ns = start_ns;
        a.end_ns = end_ns;
        a.kind = KPT_KIND_PYTHON;
        return a;
    }

    /* The batch; it lives as long as this does, and until the next call. */
    const kpt_batch *batch()
    {
        KPT_INIT(&made);
        made.struct_size += extra;
        made.order = order;
        made.activities =
            reinterpret_cast<const kpt_activity *>(lay_out(activities, activity_bytes));
        made.names = reinterpret_cast<const kpt_name *>(lay_out(names, name_bytes));
        made.threads = reinterpret_cast<const kpt_thread *>(lay_out(threads, thread_bytes));
        made.activity_count = static_cast<uint32_t>(activities.size());
        made.name_count = static_cast<uint32_t>(names.size());
        made.thread_count = static_cast<uint32_t>(threads.size());
        made.activity_stride = static_cast<uint32_t>(sizeof(kpt_activity)) + extra;
        made.name_stride = static_cast<uint32_t>(sizeof(kpt_name)) + extra;
        made.thread_stride = static_cast<uint32_t>(sizeof(kpt_thread)) + extra;
        return &made;
    }

    uint32_t order = KPT_ORDER_THREAD;

  private:
    kpt_str keep(const std::string &text)
    {
        texts.push_back(text);
        return {texts.back().data(), texts.back().size()};
    }
    template <typename record>
    const void *lay_out(const std::vector<record> &records, std::vector<uint64_t> &bytes) const
    {
        size_t stride = sizeof(record) + extra;
        bytes.assign(records.size() * stride / sizeof(uint64_t) + 1, 0xEEEEEEEEEEEEEEEE);
        for (size_t i = 0; i < records.size(); i++)
            memcpy(reinterpret_cast<char *>(bytes.data()) + i * stride, &records[i],
                   sizeof(record));
        return bytes.data();
    }

    uint32_t extra;
    kpt_batch made = {};
    std::vector<kpt_activity> activities;
    std::vector<kpt_name> names;
    std::vector<kpt_thread> threads;
    std::vector<uint64_t> activity_bytes, name_bytes, thread_bytes;
    std::deque<std::string> texts; /* which never move */
};

#endif
