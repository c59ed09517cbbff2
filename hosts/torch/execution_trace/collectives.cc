#include "hosts/torch/execution_trace/collectives.h"

#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <string>

namespace kpytrace
{

namespace
{

// Collects attributes, in the order in which torch writes them.
class Attributes
{
  public:
    enum { MAX = 12 };

    explicit Attributes(Values &values) : values_(values), all_(values.attrs(MAX)) {}

    void text(const char *name, std::string_view text)
    {
        kpt_value &value = add(name, "string");
        value.kind = KPT_VALUE_STRING;
        value.text = values_.copied(text);
    }

    void number(const char *name, const char *type, uint32_t kind, int64_t number)
    {
        kpt_value &value = add(name, type);
        value.kind = kind;
        value.number = number;
    }

    at::ArrayRef<kpt_attr> all() const
    {
        return {all_, count_};
    }

  private:
    kpt_value &add(const char *name, const char *type)
    {
        kpt_attr &attr = all_[count_++];
        attr = {kpt_str_of(name), kpt_str_of(type), {}};
        return attr.value;
    }

    Values &values_;
    kpt_attr *all_;
    size_t count_ = 0;
};

std::string list_of(const std::vector<int64_t> &sizes)
{
    std::string text = "[";
    for (size_t i = 0; i < sizes.size(); i++)
        text += (i ? ", " : "") + std::to_string(sizes[i]);
    return text + "]";
}

// Adds whether the collective is asynchronous. torch 2.11 and older do not have this field.
template <class Info>
auto add_asynchronized(Attributes &attrs, const Info &info, int)
    -> decltype(static_cast<void>(info.isAsynchronizedOp()))
{
    attrs.number("is_asynchronized_op", "string", KPT_VALUE_INT, info.isAsynchronizedOp());
}

template <class Info> void add_asynchronized(Attributes &, const Info &, long) {}

} // namespace

at::ArrayRef<kpt_attr> collective_attrs(Values &values)
{
    const auto *info = dynamic_cast<const torch::ParamCommsDebugInfo *>(
        c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
    Attributes attrs(values);
    if (!info) {
        attrs.text("debug", "missing comms info");
        return attrs.all();
    }
    const auto unsigned_number = [&attrs](const char *name, int64_t number) {
        attrs.number(name, "uint64", KPT_VALUE_INT, number);
    };
    attrs.text("collective_name", info->getCollectiveName());
    attrs.text("dtype", c10::toString(info->getDType()));
    unsigned_number("in_msg_nelems", info->getInMessageNelems());
    unsigned_number("out_msg_nelems", info->getOutMessageNelems());
    attrs.text("in_split_size", list_of(info->getInputSplitSizes()));
    attrs.text("out_split_size", list_of(info->getOutputSplitSizes()));
    unsigned_number("global_rank_start", info->getGlobalRankStart());
    unsigned_number("global_rank_stride", info->getGlobalRankStride());
    attrs.text("pg_name", info->getProcessGroupName());
    attrs.text("pg_desc", info->getProcessGroupDesc());
    unsigned_number("pg_size", info->getWorldSize());
    add_asynchronized(attrs, *info, 0);
    return attrs.all();
}

} // namespace kpytrace
