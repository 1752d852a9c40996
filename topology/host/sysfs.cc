#include "topology/host/sysfs.h"

#include <charconv>
#include <fstream>
#include <string_view>

#include "topology/base/folder.h"

namespace riffle::sysfs {

std::string attribute(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<std::filesystem::path> entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  (void)for_each_name(folder, [&](std::string_view name) { out.push_back(folder / name); });
  return out;
}

std::optional<long> number(const std::string& text, int base) {
  const char* first = text.data();
  const char* last = first + text.size();
  if (base == 16 && text.starts_with("0x")) first += 2;
  long value = 0;
  const auto [end, error] = std::from_chars(first, last, value, base);
  if (error != std::errc() || end != last || first == last) return {};
  return value;
}

std::optional<int> non_negative(const std::string& text) {
  const auto value = number(text);
  if (!value || *value < 0 || *value > 1'000'000'000) return {};
  return static_cast<int>(*value);
}

}  // namespace riffle::sysfs
