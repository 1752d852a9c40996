#include "plugin/config/config.h"

#include <algorithm>
#include <string_view>

#include "plugin/config/knob_table.h"
#include "plugin/config/log.h"
#include "plugin/config/sources.h"
#include "topology/base/nearest.h"

namespace riffle {
namespace {

struct State {
  Config config;
  std::vector<std::string> sources;   // beside knob_table()
  std::vector<std::string> problems;  // for the log, once
};

std::string_view nearest_knob(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Knob& k : knob_table()) names.push_back(k.name);
  return nearest(name, names);
}

void apply(const Setting& setting, State& state) {
  const auto& table = knob_table();
  const auto knob = std::find_if(table.begin(), table.end(),
                                 [&](const Knob& k) { return k.name == setting.name; });
  if (knob == table.end()) {
    state.problems.push_back(setting.name + " (" + setting.source +
                             ") is no setting of Riffle; did you mean " +
                             std::string(nearest_knob(setting.name)) + "?");
    return;
  }
  std::string& source = state.sources[static_cast<std::size_t>(knob - table.begin())];
  if (!source.empty()) return;  // a source that comes first has set it
  if (const Status status = set_knob(*knob, setting.value, state.config); !status) {
    state.problems.push_back(setting.name + "=" + setting.value + " (" + setting.source +
                             "): " + status.message() + "; the default " +
                             value_text(*knob, state.config) + " holds");
    source = "default";
    return;
  }
  source = setting.source;
}

State load() {
  State state{default_config(), std::vector<std::string>(knob_table().size()), {}};
  Settings settings = read_settings();
  state.problems = std::move(settings.problems);
  for (const Setting& setting : settings.found) apply(setting, state);
  for (std::string& source : state.sources) {
    if (source.empty()) source = "default";
  }
  return state;
}

State& load_and_report(State& state) {
  state = load();
  const std::string& level = state.config.log_level;
  set_log_level(level == "warn"    ? LogLevel::kWarn
                : level == "trace" ? LogLevel::kTrace
                                   : LogLevel::kInfo);
  for (const std::string& problem : state.problems) log_warn(problem);
  return state;
}

State& state() {
  // Never destroyed: other threads may still ask while the process exits.
  static State& instance = load_and_report(*new State);
  return instance;
}

}  // namespace

const Config& config() { return state().config; }

const std::vector<std::string>& config_problems() { return state().problems; }

std::vector<KnobInfo> knobs() {
  const Config defaults = default_config();
  const State& now = state();
  std::vector<KnobInfo> infos;
  for (std::size_t i = 0; i < knob_table().size(); ++i) {
    const Knob& knob = knob_table()[i];
    infos.push_back({std::string(knob.name), type_text(knob), value_text(knob, defaults),
                     range_text(knob), std::string(knob.help), value_text(knob, now.config),
                     now.sources[i], knob.in_digest});
  }
  return infos;
}

std::string decision_knobs(const Config& config) {
  std::string lines;
  for (const Knob& knob : knob_table()) {
    if (!knob.in_digest) continue;
    lines += knob.name;
    lines += '=';
    lines += value_text(knob, config);
    lines += '\n';
  }
  return lines;
}

void reload_config() { load_and_report(state()); }

}  // namespace riffle
