// text_view.h: a text as the plugin's kpt_str, which borrows it.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_TEXT_VIEW_H
#define KPTI_HOSTS_TORCH_OPERATORS_TEXT_VIEW_H

#include <string_view>

#include "abi/kpt.h"

namespace kpytrace
{

inline kpt_str view(std::string_view text)
{
    return {text.data(), text.size()};
}

} // namespace kpytrace
#endif
