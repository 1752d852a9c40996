// Where settings come from, before their meaning is checked: NAME, value and origin.
#pragma once

#include <string>
#include <vector>

namespace riffle {

struct Setting {
  std::string name;
  std::string value;
  std::string source;  // "environment" or "/etc/riffle.conf:12"
};

struct Settings {
  std::vector<Setting> found;         // the first of a name wins
  std::vector<std::string> problems;  // unreadable files, malformed lines: one sentence each
};

// Environment first, then $RIFFLE_CONF_FILE or, without it, ~/.riffle.conf and /etc/riffle.conf.
// An empty variable counts as unset. Variables that are no settings (RIFFLE_CONF_FILE and the test
// suite's RIFFLE_TEST_*) are left out.
Settings read_settings();

}  // namespace riffle
