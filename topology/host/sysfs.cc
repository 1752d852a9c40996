#include "topology/host/sysfs.h"

#include <charconv>
#include <fstream>
#include <system_error>

namespace riffle::sysfs {

std::string attribute(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<std::filesystem::path> entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code error;
  std::filesystem::directory_iterator i(folder, error);
  for (; !error && i != std::filesystem::directory_iterator(); i.increment(error)) {
    out.push_back(i->path());
  }
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
