#include "topology/fabric/hostlist.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace riffle {
namespace {

constexpr std::size_t kMaxNameBytes = 255;
constexpr std::string_view kAcceptedNames =
    "accepted are names like node1, node[1-4,7], r[1-2]n[01-16]";

Status refuse(std::string_view item, const std::string& why) {
  constexpr std::size_t kShown = 60;
  return invalid_argument("\"" + std::string(item.substr(0, kShown)) +
                          (item.size() > kShown ? "..." : "") + "\": " + why + "; " +
                          std::string(kAcceptedNames));
}

bool is_number(std::string_view s) {
  return !s.empty() && s.size() <= 9 &&
         std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::uint32_t number(std::string_view s) {
  std::uint32_t value = 0;
  std::from_chars(s.data(), s.data() + s.size(), value);
  return value;
}

// One part of a bracket: "7" or "01-16".
Status expand_range(std::string_view item, std::string_view range, std::vector<std::string>& out) {
  const std::size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  if (!is_number(first) || !is_number(last)) {
    return refuse(item, "a bracket holds numbers of at most 9 digits and ranges of them");
  }
  const std::uint32_t begin = number(first), end = number(last);
  if (end < begin) return refuse(item, "the range " + std::string(range) + " runs backwards");
  if (end - begin >= kMaxHostNames) return refuse(item, "the range is too long");
  for (std::uint32_t n = begin; n <= end; ++n) {
    std::string digits = std::to_string(n);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    out.push_back(std::move(digits));
  }
  return Status::ok();
}

Status expand_bracket(std::string_view item, std::string_view inside,
                      std::vector<std::string>& out) {
  while (true) {
    const std::size_t comma = inside.find(',');
    if (Status s = expand_range(item, inside.substr(0, comma), out); !s) return s;
    if (out.size() > kMaxHostNames) return refuse(item, "too many names");
    if (comma == std::string_view::npos) return Status::ok();
    inside.remove_prefix(comma + 1);
  }
}

bool is_name_byte(char c) { return c > ' ' && c < 0x7f && c != '[' && c != ']' && c != '"'; }

// One item between commas outside of brackets; several brackets count like digits.
Status expand_item(std::string_view item, std::vector<std::string>& names) {
  std::vector<std::string> begun = {""};
  for (std::size_t at = 0; at < item.size();) {
    std::vector<std::string> endings;
    if (item[at] == '[') {
      const std::size_t close = item.find(']', at);
      if (close == std::string_view::npos) return refuse(item, "a bracket is not closed");
      if (Status s = expand_bracket(item, item.substr(at + 1, close - at - 1), endings); !s) {
        return s;
      }
      at = close + 1;
    } else {
      const std::size_t from = at;
      while (at < item.size() && is_name_byte(item[at])) ++at;
      if (at == from) return refuse(item, "a byte that no node name has");
      endings.emplace_back(item.substr(from, at - from));
    }
    if (names.size() + begun.size() * endings.size() > kMaxHostNames) {
      return refuse(item, "more than " + std::to_string(kMaxHostNames) + " names in one file");
    }
    if (begun.front().size() + endings.back().size() > kMaxNameBytes) {
      return refuse(item, "a name of more than 255 bytes");
    }
    std::vector<std::string> grown;
    grown.reserve(begun.size() * endings.size());
    for (const std::string& b : begun) {
      for (const std::string& e : endings) grown.push_back(b + e);
    }
    begun = std::move(grown);
  }
  if (item.empty()) return refuse(item, "a name is missing");
  names.insert(names.end(), std::make_move_iterator(begun.begin()),
               std::make_move_iterator(begun.end()));
  return Status::ok();
}

}  // namespace

Status expand_hostlist(std::string_view text, std::vector<std::string>& names) {
  std::size_t begin = 0;
  bool in_bracket = false;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const bool is_end = at == text.size();
    if (!is_end && text[at] == '[') in_bracket = true;
    if (!is_end && text[at] == ']') in_bracket = false;
    if (!is_end && (in_bracket || text[at] != ',')) continue;
    if (Status s = expand_item(text.substr(begin, at - begin), names); !s) return s;
    begin = at + 1;
  }
  return Status::ok();
}

}  // namespace riffle
