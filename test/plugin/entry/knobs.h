// A configuration with some knobs set, free of this process's environment.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "plugin/config/knob_table.h"

namespace riffle {

using Knobs = std::vector<std::pair<const char*, const char*>>;

inline Config config_with(const Knobs& knobs) {
  Config config = default_config();
  for (const auto& [name, value] : knobs) {
    const auto knob = std::ranges::find(knob_table(), name, &Knob::name);
    (void)set_knob(*knob, value, config);  // one that it refuses leaves the default, as in config()
  }
  return config;
}

}  // namespace riffle
