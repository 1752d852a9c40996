// The name that a mistyped one may have meant. Pure, any thread.
#pragma once

#include <span>
#include <string_view>

namespace riffle {

// Of several as near the first; empty where there are no names.
std::string_view nearest(std::string_view name, std::span<const std::string_view> names);

}  // namespace riffle
