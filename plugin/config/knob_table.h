// knobs.def as data: one row per knob, and the one parser that turns text into its field.
//
// Integers are decimal; where the unit is bytes a suffix K, M or G (binary) may follow. Switches
// take 0/1, off/on, no/yes, false/true. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plugin/config/config.h"
#include "topology/base/status.h"

namespace riffle {

using KnobField = std::variant<std::int64_t Config::*, bool Config::*, std::string Config::*>;

struct Knob {
  std::string_view name;
  KnobField field;
  bool in_digest;
  std::string_view help;
  std::int64_t min = 0;  // integers; a label's length
  std::int64_t max = 0;
  std::string_view unit;
  std::string_view choices;  // "a|b|c"; empty for free text
};

const std::vector<Knob>& knob_table();
// The defaults of knobs.def.
Config default_config();

// Sets the knob's field; on error names the accepted range and leaves `config` as it was.
Status set_knob(const Knob& knob, std::string_view text, Config& config);
// The field as text that set_knob reads back to the same value.
std::string value_text(const Knob& knob, const Config& config);
std::string type_text(const Knob& knob);   // "integer", "switch", "choice", "text"
std::string range_text(const Knob& knob);  // "1..16", "0|1", "auto|on|off", "any text"

}  // namespace riffle
