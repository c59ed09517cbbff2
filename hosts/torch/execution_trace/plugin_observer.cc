#include "hosts/torch/execution_trace/plugin_observer.h"

#include <algorithm>
#include <string_view>

namespace kpytrace
{

kpt_tape *PluginObserver::tape() const
{
    kpt_tape *out = nullptr;
    if (!KPT_HAS(observer_.ops, kpt_observer_ops, tape) ||
        observer_.ops->tape(observer_.self, &out) != KPT_OK || !out ||
        out->struct_size < KPT_TAPE_V1_SIZE || out->ops->struct_size < KPT_TAPE_OPS_V1_SIZE)
        return nullptr;
    return out;
}

bool PluginObserver::is_listed(const kpt_str &name) const
{
    const std::string &list = settings_.data_ops;
    const std::string_view wanted(name.data, name.size);
    for (size_t at = 0; at < list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        if (std::string_view(list).substr(at, comma - at) == wanted) return true;
        at = comma + 1;
    }
    return false;
}

} // namespace kpytrace
