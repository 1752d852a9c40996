// A time in seconds, for messages: "0.2 s". Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace riffle {

inline std::string seconds_text(std::uint64_t ns) {
  std::string text = std::to_string(static_cast<double>(ns) / 1e9);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace riffle
