// The part of YAML that topology files are written in, JSON included: block and flow maps and
// lists, plain and quoted scalars, comments. Anchors, tags, block scalars and several documents are
// refused with their line. No exceptions, bounded depth.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

struct YamlValue {
  enum class Kind { kNull, kScalar, kMap, kList };
  Kind kind = Kind::kNull;
  int line = 0;
  std::string text;               // of a scalar
  std::vector<YamlValue> items;   // of a list or a map
  std::vector<std::string> keys;  // of a map, one for each of items

  // The first item of a map with that key; null if there is none.
  const YamlValue* find(std::string_view key) const;
  bool is_scalar() const { return kind == Kind::kScalar; }
};

// An error says line and what is accepted; `origin` stands for the file.
Result<YamlValue> read_yaml(std::string_view text, const std::string& origin);

}  // namespace riffle
