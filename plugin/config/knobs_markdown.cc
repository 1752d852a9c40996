#include "plugin/config/knobs_markdown.h"

#include "plugin/config/config.h"

namespace riffle {
namespace {

// A bar would end the cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string code_cell(const std::string& text) {
  return text.empty() ? "empty" : "`" + cell(text) + "`";
}

}  // namespace

std::string knobs_markdown() {
  std::string page =
      "# Settings\n\n"
      "Every setting is an environment variable or a line `NAME=value` of a file: "
      "`$RIFFLE_CONF_FILE`,\nor without it `~/.riffle.conf` and then `/etc/riffle.conf`. The "
      "environment wins; `#` starts a comment.\nSizes in bytes take `K`, `M` and `G` (powers of "
      "1024). A value out of range is reported and the default\nholds. Settings marked \"all "
      "nodes\" must be equal on all nodes; a difference is an error that names the\nnode and the "
      "setting.\n\n"
      "This page is generated from `plugin/config/knobs.def`.\n\n"
      "| name | default | accepted | all nodes | meaning |\n|---|---|---|---|---|\n";
  for (const KnobInfo& knob : knobs()) {
    const std::string accepted = knob.type == "text" ? "text" : code_cell(knob.range);
    page += "| `" + knob.name + "` | " + code_cell(knob.default_value) + " | " + accepted + " | " +
            (knob.in_digest ? "yes" : "no") + " | " + cell(knob.help) + " |\n";
  }
  return page;
}

}  // namespace riffle
