#include "lab/cluster/profile_section.h"

#include <algorithm>

namespace riffle::cluster {
namespace {

constexpr std::int64_t kMaxMbps = 100'000;

std::string listed(std::initializer_list<std::string_view> words, const char* quote) {
  std::string list;
  for (const auto word : words) {
    list += (list.empty() ? "" : ", ") + std::string(quote) + std::string(word) + quote;
  }
  return list;
}

}  // namespace

void Section::accept_only(std::initializer_list<std::string_view> keys) {
  for (const auto& [key, node] : table_) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
    fail("unknown key \"" + std::string(key.str()) + "\"; accepted: " + listed(keys, ""));
  }
}

std::int64_t Section::integer(const char* key, std::int64_t least, std::int64_t most,
                              std::int64_t absent) {
  const toml::node* node = table_.get(key);
  if (node == nullptr && absent >= 0) return absent;
  const auto value = node ? node->value_exact<std::int64_t>() : std::nullopt;
  if (value && *value >= least && *value <= most) return *value;
  fail(std::string(key) + " must be a whole number from " + std::to_string(least) + " to " +
       std::to_string(most));
  return least;
}

Rates Section::rates(const char* both, const char* out, const char* in) {
  if (!has(out) && !has(in)) {
    const std::int64_t kbps = integer(both, 1, kMaxMbps, 0) * 1000;
    return {kbps, kbps};
  }
  if (has(both)) fail(std::string(both) + " excludes " + out + " and " + in);
  return {integer(out, 1, kMaxMbps, -1) * 1000, integer(in, 1, kMaxMbps, -1) * 1000};
}

std::string Section::text(const char* key) {
  const auto value = table_[key].value_exact<std::string>();
  if (!value || value->empty()) fail(std::string(key) + " must be a text in quotes");
  return value.value_or("");
}

bool Section::flag(const char* key) {
  const auto value = table_[key].value_exact<bool>();
  if (!value && has(key)) fail(std::string(key) + " must be true or false");
  return value.value_or(false);
}

std::size_t Section::choice(const char* key, std::initializer_list<std::string_view> choices) {
  if (!has(key)) return 0;
  const auto value = table_[key].value_exact<std::string>();
  const auto* const found = std::find(choices.begin(), choices.end(), value.value_or(""));
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  fail(std::string(key) + " must be one of " + listed(choices, "\""));
  return 0;
}

}  // namespace riffle::cluster
