// Any text as the value of any knob: what is accepted lies in the range and reads back to itself,
// what is refused changes nothing and says what is accepted. The first byte chooses the knob.
#include <string>
#include <string_view>

#include "plugin/config/knob_table.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const Config defaults = default_config();
  for (std::size_t i = 0; i < knob_table().size(); ++i) {
    for (const std::string& text : {value_text(knob_table()[i], defaults), std::string("64K"),
                                    std::string("1"), std::string("off"), std::string("4194304")}) {
      Bytes seed{static_cast<std::uint8_t>(i)};
      seed.insert(seed.end(), text.begin(), text.end());
      all.push_back(seed);
    }
  }
  return all;
}

void try_input(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const Knob& knob = knob_table()[input[0] % knob_table().size()];
  const std::string_view text(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  const std::string name(knob.name);
  Config config = default_config();
  const std::string before = value_text(knob, config);
  if (const Status status = set_knob(knob, text, config); !status) {
    require(value_text(knob, config) == before, name + " was refused, yet changed");
    require(status.message().find(range_text(knob)) != std::string::npos,
            name + " hides its range");
    return;
  }
  const std::string value = value_text(knob, config);
  if (const auto* field = std::get_if<std::int64_t Config::*>(&knob.field)) {
    require(config.**field >= knob.min && config.**field <= knob.max, name + " out of range");
  }
  Config again = default_config();
  require(set_knob(knob, value, again).is_ok(), name + " does not accept its own value " + value);
  require(value_text(knob, again) == value, name + " does not read back");
}

}  // namespace riffle::fuzz
