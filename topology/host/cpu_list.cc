#include "topology/host/cpu_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>

namespace riffle {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<int> cpu_number(std::string_view text) {
  text = trimmed(text);
  int value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < 0 || value >= kMaxCpus) return {};
  return value;
}

}  // namespace

Result<CpuList> parse_cpu_list(std::string_view text) {
  CpuList cpus;
  text = trimmed(text);
  bool is_last = text.empty();
  while (!is_last) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = cpu_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : cpu_number(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return invalid_argument("'" + std::string(part.substr(0, 40)) +
                              "' is no CPU and no range of CPUs; accepted are numbers from 0 to " +
                              std::to_string(kMaxCpus - 1) + " as in 0-3,8");
    }
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (cpus.size() > 2 * std::size_t{kMaxCpus}) {
      return invalid_argument("a list of more than " + std::to_string(kMaxCpus) + " CPUs");
    }
    is_last = comma == std::string_view::npos;
    if (!is_last) text.remove_prefix(comma + 1);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string to_text(const CpuList& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += '-' + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

bool contains(const CpuList& cpus, int cpu) {
  return std::binary_search(cpus.begin(), cpus.end(), cpu);
}

CpuList intersection(const CpuList& a, const CpuList& b) {
  CpuList out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::string to_mask(const CpuList& cpus) {
  std::vector<std::uint32_t> words(cpus.empty() ? 1
                                                : static_cast<std::size_t>(cpus.back()) / 32 + 1);
  for (const int cpu : cpus) {
    words[static_cast<std::size_t>(cpu) / 32] |= std::uint32_t{1} << (cpu % 32);
  }
  std::string text;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "%08x", *word);
    text += (text.empty() ? "" : ",") + std::string(hex);
  }
  return text;
}

}  // namespace riffle
