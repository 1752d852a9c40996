// Small files of sysfs. Internal to topology/host. No state, any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace riffle::sysfs {

// The first line of an attribute; empty if it is absent or the kernel refuses (as it does for the
// speed and carrier of an interface that is down).
std::string attribute(const std::filesystem::path& file);

// What lies in a folder; nothing if there is no such folder.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder);

// The whole text as a number; "0x" may stand before base 16.
std::optional<long> number(const std::string& text, int base = 10);
// None also for negative numbers, which mean "unknown" there, and for those above a thousand
// million.
std::optional<int> non_negative(const std::string& text);

}  // namespace riffle::sysfs
