// `riffle plan`: the groups the planner chooses for a fabric, and why.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "plugin/config/config.h"
#include "test/cluster/profile.h"
#include "tools/command.h"
#include "tools/locate.h"
#include "topology/fabric/fabric_file.h"
#include "topology/fabric/fabric_toml.h"
#include "topology/plan/planner.h"

namespace riffle::tools {
namespace {

struct Options {
  std::string fabric, profile;
  std::vector<std::string> nodes;
  std::uint64_t bytes = 16 << 20;
  int lanes = 0;
  std::string only;
  bool json = false;
};

// All nodes of a file, in its order.
Result<std::vector<std::string>> nodes_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return invalid_argument("cannot read the fabric file " + path);
  const auto parsed = read_toml(text.str(), path);
  if (!parsed) return parsed.status();
  std::vector<std::pair<std::int64_t, std::string>> by_line;
  for (const auto& [name, node] : parsed->nodes) by_line.emplace_back(node.line, name);
  std::sort(by_line.begin(), by_line.end());
  std::vector<std::string> names;
  for (auto& [line, name] : by_line) names.push_back(name);
  if (names.empty())
    return invalid_argument("the fabric file " + path + " has no [[node]]: give --nodes");
  return names;
}

Result<Fabric> read_fabric(const Options& options) {
  if (!options.profile.empty()) {
    const auto profile = cluster::load_profile(options.profile, profile_folder());
    if (!profile) return profile.status();
    if (!profile->shaped()) return invalid_argument("profile " + profile->name + " has no rates");
    return fabric_of(profile.value());
  }
  std::vector<std::string> names = options.nodes;
  if (names.empty()) {
    auto all = nodes_of(options.fabric);
    if (!all) return all.status();
    names = std::move(all.value());
  }
  std::vector<NodeAliases> aliases;
  for (const std::string& name : names) aliases.push_back({name});
  auto loaded = load_fabric(options.fabric, aliases);
  if (!loaded) return loaded.status();
  for (const std::string& note : loaded->notes)
    std::fprintf(stderr, "riffle plan: %s\n", note.c_str());
  return std::move(loaded->fabric);
}

void print_json(const PlanChoice& choice, const Options& options) {
  nlohmann::json out = {
      {"bytes", options.bytes},      {"chosen", choice.plans.name},
      {"reason", choice.reason},     {"predicted_us", choice.time_us},
      {"bound_us", choice.bound_us}, {"plans", nlohmann::json::parse(to_json(choice.plans))}};
  for (const Candidate& c : choice.candidates) {
    out["candidates"].push_back(
        {{"name", c.name}, {"predicted_us", c.time_us}, {"limit", c.limit}});
  }
  std::printf("%s\n", out.dump(2).c_str());
}

void print_text(const PlanChoice& choice, const Options& options) {
  std::printf("%s\n\n", choice.reason.c_str());
  std::printf("%-28s %14s %8s  limit\n", "candidate", "predicted (us)", "x bound");
  for (const Candidate& c : choice.candidates) {
    std::printf("%-28s %14.0f %8.3f  %s\n", c.name.c_str(), c.time_us, c.time_us / choice.bound_us,
                c.limit.c_str());
  }
  std::printf(
      "%-28s %14.0f %8.3f  no exact all-reduce of %llu bytes is faster (link rates, no "
      "headers)\n",
      "bound", choice.bound_us, 1.0, static_cast<unsigned long long>(options.bytes));
  const auto lanes = choice.plans.lanes.size();
  std::printf("\nlane 1 of %zu:\n%s", lanes, to_text(choice.plans.lanes.front()).c_str());
}

int run(const Options& options) {
  if (options.fabric.empty() == options.profile.empty()) {
    return report(invalid_argument("plan needs --fabric or --profile, one of them"));
  }
  const auto fabric = read_fabric(options);
  if (!fabric) return report(fabric.status());
  PlanOptions plan_options;
  plan_options.max_lanes = options.lanes ? options.lanes : static_cast<int>(config().lanes);
  plan_options.only = options.only.empty() ? config().plan : options.only;
  const auto choice = plan(fabric.value(), options.bytes, plan_options);
  if (!choice) return report(choice.status());
  if (options.json)
    print_json(choice.value(), options);
  else
    print_text(choice.value(), options);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* sub =
      app.add_subcommand("plan", "The groups chosen for a network, predicted time, why");
  sub->add_option("--fabric", o->fabric, "Fabric file, as for RIFFLE_FABRIC");
  sub->add_option("--nodes", o->nodes, "Its nodes in rank order; all of the file by default")
      ->delimiter(',');
  sub->add_option("--profile", o->profile, "A bench profile instead of a fabric file");
  sub->add_option("--bytes", o->bytes, "Size of the all-reduce")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  sub->add_option("--lanes", o->lanes, "Shuffled variants, as RIFFLE_LANES")
      ->check(CLI::Range(1, 64));
  sub->add_option("--only", o->only, "Force one kind, as RIFFLE_PLAN");
  sub->add_flag("--json", o->json, "Everything as JSON");
  sub->footer("Example: riffle plan --profile racks8 --bytes 32M");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
