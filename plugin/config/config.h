// The settings of this process: every knob of knobs.def with its value and where it came from.
//
// Sources in order: environment RIFFLE_*, then the file $RIFFLE_CONF_FILE, else ~/.riffle.conf,
// then /etc/riffle.conf (lines KEY=VALUE, # comments). A bad value is reported once with knob,
// value, source and accepted range, and the default holds. Read once on first use; constant
// afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace riffle {

struct Config {
#define RIFFLE_INT(field, name, default_value, min, max, unit, digest, help) std::int64_t field;
#define RIFFLE_BOOL(field, name, default_value, digest, help) bool field;
#define RIFFLE_CHOICE(field, name, default_value, choices, digest, help) std::string field;
#define RIFFLE_TEXT(field, name, default_value, digest, help) std::string field;
#define RIFFLE_LABEL(field, name, most, digest, help) std::string field;
#include "plugin/config/knobs.def"
#undef RIFFLE_INT
#undef RIFFLE_BOOL
#undef RIFFLE_CHOICE
#undef RIFFLE_TEXT
#undef RIFFLE_LABEL
};

const Config& config();

// One knob as text, for `riffle config`, the docs table, the man page and digests.
struct KnobInfo {
  std::string name;  // e.g. "RIFFLE_STREAMS"
  std::string type;  // "integer", "switch", "choice", "text"
  std::string default_value;
  std::string range;       // e.g. "1..16", "auto|on|off"
  std::string help;        // one sentence
  std::string value;       // in force
  std::string source;      // "default", "environment" or a file and line
  bool in_digest = false;  // must be equal on all nodes of a communicator
};
std::vector<KnobInfo> knobs();

// What is wrong with the sources, one sentence each, as the log says it.
const std::vector<std::string>& config_problems();

// The knobs that all nodes must agree on, "NAME=value" lines in table order.
std::string decision_knobs(const Config& config);

// For tests: reads the sources again. Not thread safe.
void reload_config();

}  // namespace riffle
