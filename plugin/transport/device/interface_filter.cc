#include "plugin/transport/device/interface_filter.h"

#include <algorithm>

namespace riffle {

InterfaceFilter::InterfaceFilter(const std::string& rule) {
  std::size_t at = 0;
  if (at < rule.size() && rule[at] == '^') {
    excludes_ = true;
    ++at;
  }
  if (at < rule.size() && rule[at] == '=') {
    is_exact_ = true;
    ++at;
  }
  while (at < rule.size()) {
    const std::size_t end = std::min(rule.find(',', at), rule.size());
    std::string word = rule.substr(at, end - at);
    word = word.substr(0, word.find(':'));  // NCCL allows "name:port"; the port says nothing here
    if (!word.empty()) words_.push_back(std::move(word));
    at = end + 1;
  }
}

bool InterfaceFilter::accepts(const std::string& interface) const {
  const bool matches = words_.empty() || std::any_of(words_.begin(), words_.end(), [&](auto& word) {
                         return is_exact_ ? interface == word : interface.starts_with(word);
                       });
  return matches != excludes_;
}

}  // namespace riffle
