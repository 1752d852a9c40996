// `riffle config`: every setting with its value here, where that comes from, and what is accepted.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "plugin/config/config.h"
#include "tools/command.h"

namespace riffle::tools {
namespace {

struct ConfigArguments {
  bool json = false, markdown = false;
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
  std::printf("%s\n", array.dump(2).c_str());
}

int run(const ConfigArguments& options) {
  const auto all = knobs();
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
  auto* json = sub->add_flag("--json", o->json, "As JSON");
  sub->add_flag("--markdown", o->markdown, "As a table for documents")->excludes(json);
  sub->footer(
      "Settings come from the environment, then $RIFFLE_CONF_FILE or ~/.riffle.conf, then\n"
      "/etc/riffle.conf. Example: RIFFLE_STREAMS=4 riffle config");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
