// The YAML subset by itself: values of bounded depth whose lines exist, or an error with its line.
#include <algorithm>
#include <string>

#include "test/fuzz/target.h"
#include "topology/fabric/yaml_subset.h"

namespace riffle::fuzz {
namespace {

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

void check(const YamlValue& value, int lines, int depth) {
  require(depth < 40, "nested deeper than accepted");
  require(value.line >= 0 && value.line <= lines, "a value in a line that does not exist");
  const bool is_map = value.kind == YamlValue::Kind::kMap;
  require(value.keys.size() == (is_map ? value.items.size() : 0), "not one key per item of a map");
  require(is_map || value.kind == YamlValue::Kind::kList || value.items.empty(), "stray items");
  for (const YamlValue& item : value.items) check(item, lines, depth + 1);
}

}  // namespace

std::vector<Bytes> seeds() {
  return {
      bytes_of("---\na: 1 # comment\nb:\n- x: 'it''s'\n  y: \"q\\\"\\u0041\"\n-\n  - [1, {k: v}]\n"
               "c: ~\n"),
      bytes_of("{\"a\": [1, 2, {\"b\": \"c\"}],\n\t\"d\": null}\n"),
      bytes_of("- - - a\n    - b\n")};
}

void try_input(std::span<const std::uint8_t> input) {
  const std::string text(input.begin(), input.end());
  const Result<YamlValue> value = read_yaml(text, "some.yaml");
  if (!value) {
    require(value.status().message().starts_with("topology file some.yaml, line "),
            "error without its place: " + value.status().message());
    return;
  }
  check(*value, 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n')), 0);
}

}  // namespace riffle::fuzz
