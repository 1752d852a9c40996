// `riffle config`: every setting with its value here, where that comes from, and what is accepted.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "plugin/config/config.h"
#include "tools/command.h"
#include "topology/base/nearest.h"

namespace riffle::tools {
namespace {

struct ConfigArguments {
  bool json = false, markdown = false, changed = false;
  std::vector<std::string> names;
};

std::string shown(const std::string& value) { return value.empty() ? "(empty)" : value; }

void print_text(const std::vector<KnobInfo>& all) {
  for (const KnobInfo& k : all) {
    std::printf("%s = %s\n    %s\n    %s, accepted: %s; default: %s; now from: %s%s\n",
                k.name.c_str(), shown(k.value).c_str(), k.help.c_str(), k.type.c_str(),
                k.range.c_str(), shown(k.default_value).c_str(), k.source.c_str(),
                k.in_digest ? "; must be equal on all nodes" : "");
  }
}

// A "|" would end the table's cell.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

void print_markdown(const std::vector<KnobInfo>& all) {
  std::printf(
      "| setting | type | default | accepted | on all nodes equal | meaning |\n"
      "|---|---|---|---|---|---|\n");
  for (const KnobInfo& k : all) {
    std::printf("| `%s` | %s | %s | %s | %s | %s |\n", k.name.c_str(), k.type.c_str(),
                k.default_value.empty() ? "" : ("`" + k.default_value + "`").c_str(),
                cell(k.range).c_str(), k.in_digest ? "yes" : "", k.help.c_str());
  }
}

void print_json(const std::vector<KnobInfo>& all) {
  nlohmann::json array = nlohmann::json::array();
  for (const KnobInfo& k : all) {
    array.push_back({{"name", k.name},
                     {"type", k.type},
                     {"default", k.default_value},
                     {"range", k.range},
                     {"help", k.help},
                     {"value", k.value},
                     {"source", k.source},
                     {"equal_on_all_nodes", k.in_digest}});
  }
  const nlohmann::json out = {{"schema", "riffle-config-1"}, {"settings", std::move(array)}};
  std::printf("%s\n", out.dump(2).c_str());
}

Result<KnobInfo> find(const std::vector<KnobInfo>& all, const std::string& name) {
  std::vector<std::string_view> names;
  for (const KnobInfo& k : all) {
    if (k.name == name || k.name == "RIFFLE_" + name) return k;
    names.push_back(k.name);
  }
  return invalid_argument(name + " is no setting of Riffle; did you mean " +
                          std::string(nearest(name, names)) + "?");
}

int run(const ConfigArguments& options) {
  auto all = knobs();
  if (!options.names.empty()) {
    std::vector<KnobInfo> some;
    for (const std::string& name : options.names) {
      const auto knob = find(all, name);
      if (!knob) return report(knob.status());
      some.push_back(*knob);
    }
    all = std::move(some);
  }
  if (options.changed) std::erase_if(all, [](const KnobInfo& k) { return k.source == "default"; });
  if (options.json)
    print_json(all);
  else if (options.markdown)
    print_markdown(all);
  else
    print_text(all);
  return 0;
}

}  // namespace

void add_config(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ConfigArguments>();
  CLI::App* sub = app.add_subcommand("config", "Every setting: value, source, accepted values");
  sub->add_option("name", o->names, "Only these; RIFFLE_ may be left out");
  sub->add_flag("--changed", o->changed, "Only those that are set");
  auto* json = sub->add_flag("--json", o->json, "As JSON");
  sub->add_flag("--markdown", o->markdown, "As a table for documents")->excludes(json);
  sub->footer(
      "Settings come from the environment, then $RIFFLE_CONF_FILE or ~/.riffle.conf, then\n"
      "/etc/riffle.conf. Example: RIFFLE_STREAMS=4 riffle config --changed");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
