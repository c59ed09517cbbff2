// collective.cc: a collective as those backends report it that need a GPU.
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

namespace
{

void known()
{
    const std::vector<int64_t> in = {1, 2};
    const std::vector<int64_t> out = {3};
    const auto sequence = std::make_tuple(static_cast<int64_t>(5), false);
    const auto group = std::make_tuple(std::string("7"), std::string("the group"));
    RECORD_PARAM_COMMS(sequence, group, 3, "allreduce", 100, 200, at::kFloat, in, out, 4, 2, 16);
}

void unknown()
{
    RECORD_FUNCTION(at::kParamCommsCallName, std::vector<c10::IValue>({c10::IValue(1)}));
}

} // namespace

extern "C" __attribute__((visibility("default"))) void kpt_collective(int is_known)
{
    is_known ? known() : unknown();
}
