// function_kind.h: whether what torch reports by a RecordFunction lies within one call of C++, as operators do, or is a
// range that begins and ends in separate calls.
#ifndef KPTI_HOSTS_TORCH_COMMON_FUNCTION_KIND_H
#define KPTI_HOSTS_TORCH_COMMON_FUNCTION_KIND_H

#include <ATen/record_function.h>

#include <string_view>

namespace kpytrace
{

template <class Function> const char *overload_of(const Function &function)
{
    if constexpr (requires { function.overload_name(); }) return function.overload_name();
    return nullptr;
}

// Reading a schema copies its texts. But all functions without a schema return the same overload text, at one address,
// and operators return another.
inline bool is_without_schema(const at::RecordFunction &function)
{
    static const char *const overload_of_none = overload_of(at::RecordFunction());
    return overload_of(function) == overload_of_none && !function.operator_name();
}

// Autograd's engine has no schema either, nor have the views that it makes inside aten::detach. They begin and end in one
// call, and are frequent.
inline bool is_of_autograd(const at::RecordFunction &function)
{
    static constexpr std::string_view prefix = "autograd::engine::";
    const std::string_view name = function.name();
    return name.starts_with(prefix) || name == "detach" || name == "detach_";
}

// Operators have the scope FUNCTION. So has what Python begins and ends with _RecordFunctionFast, such as the phases of
// torch.compile, which has a name and no schema.
inline bool is_range(const at::RecordFunction &function)
{
    if (function.scope() == at::RecordScope::USER_SCOPE) return true;
    return function.scope() == at::RecordScope::FUNCTION && is_without_schema(function) &&
           !is_of_autograd(function);
}

} // namespace kpytrace
#endif
