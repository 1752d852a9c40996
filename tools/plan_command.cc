// `riffle plan`: the groups the planner chooses for a fabric, and why; with --policy, those of a
// relaxed mode.
#include <cstdio>
#include <fstream>
#include <memory>

#include "plugin/config/config.h"
#include "tools/command.h"
#include "tools/fabric_source.h"
#include "tools/plan/plan_view.h"
#include "tools/plan/policy_view.h"
#include "tools/size_option.h"
#include "tools/terminal/patience.h"
#include "tools/terminal/terminal.h"
#include "topology/plan/planner.h"

namespace riffle::tools {
namespace {

struct PlanArguments {
  FabricSource source;
  std::uint64_t bytes = 16 << 20;
  int lanes = 0, crowding = 1;
  std::int64_t message_ns = kMessageNs;
  std::string only, svg;
  bool json = false;
  std::string policy, rule;
  PolicyQuestion question;
};

// The rule of shadow_sync's rounds, its numbers as the settings have them.
Status read_rule(const std::string& rule, PolicyQuestion& question) {
  const Config& c = config();
  std::string wrong;
  question.shadow = shadow_settings({rule.empty() ? c.shadow_rule : rule, c.shadow_pull,
                                     c.easgd_follow, c.block_rate, c.block_momentum},
                                    &wrong);
  if (!wrong.empty()) return invalid_argument(wrong);
  if (question.shadow.variant != ShadowVariant::kDelta && question.options.delta != 1) {
    return invalid_argument("--delta is of the rule delta, the rule is " +
                            std::string(name_of(question.shadow.variant)));
  }
  put_into(question.shadow, &question.options);
  return Status::ok();
}

int run_policy(const PlanArguments& options, const Fabric& fabric) {
  PolicyQuestion question = options.question;
  for (const ScheduleMode mode :
       {ScheduleMode::kDsSync, ScheduleMode::kMoshpit, ScheduleMode::kShadowSync}) {
    if (options.policy == name_of(mode)) question.mode = mode;
  }
  if (question.mode == ScheduleMode::kShadowSync) {
    if (Status s = read_rule(options.rule, question); !s) return report(s);
  } else if (!options.rule.empty()) {
    return report(invalid_argument("--rule is of --policy shadow_sync"));
  }
  question.options.bytes = options.bytes;
  question.options.only = options.only;
  question.options.message_ns = options.message_ns;
  if (options.lanes > 0) question.options.max_lanes = options.lanes;
  const auto choice = patiently(
      "planning", [&] { return choose_schedule(fabric, question.mode, question.options); });
  if (!choice) return report(choice.status());
  const PolicyView view{&fabric, &choice.value(), question};
  std::fputs((options.json ? to_json(view) : to_text(view, Colours(stdout))).c_str(), stdout);
  return 0;
}

int run(const PlanArguments& options) {
  const auto fabric = read_fabric(options.source, "plan");
  if (!fabric) return report(fabric.status());
  if (!options.policy.empty()) return run_policy(options, fabric.value());
  PlanOptions plan_options;
  plan_options.max_lanes = options.lanes ? options.lanes : static_cast<int>(config().lanes);
  plan_options.only = options.only.empty() ? config().plan : options.only;
  plan_options.message_ns = options.message_ns;
  plan_options.small_message_ns = kSmallMessageNs * options.crowding;
  const auto choice =
      patiently("planning", [&] { return plan(fabric.value(), options.bytes, plan_options); });
  if (!choice) return report(choice.status());
  const PlanView view(fabric.value(), choice.value(), options.bytes);
  if (!options.svg.empty()) {
    std::ofstream file(options.svg);
    file << to_svg(view);
    if (!file.flush()) return report(system_error("cannot write " + options.svg));
  }
  std::fputs((options.json ? to_json(view) : to_text(view, Colours(stdout))).c_str(), stdout);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<PlanArguments>();
  CLI::App* sub =
      app.add_subcommand("plan", "The groups chosen for a network, predicted time, why");
  add_options(*sub, o->source);
  add_bytes(*sub, o->bytes, "Size of the all-reduce");
  sub->add_option("--lanes", o->lanes, "Shuffled variants, as RIFFLE_LANES")
      ->check(CLI::Range(1, 64));
  sub->add_option("--crowding", o->crowding,
                  "Busy threads per processor where nodes share a machine: for small sums")
      ->check(CLI::Range(1, 10'000));
  sub->add_option("--message-ns", o->message_ns,
                  "Processor time per message, over the threads that share it: jobs measure it")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  sub->add_option("--only", o->only, "Force one kind, as RIFFLE_PLAN");
  sub->add_flag("--json", o->json, "Everything as JSON");
  auto* svg = sub->add_option("--svg", o->svg, "Also draw network and groups to this file");
  PolicyQuestion& q = o->question;
  auto* policy = sub->add_option("--policy", o->policy, "Groups of a relaxed mode, as RIFFLE_SYNC")
                     ->check(CLI::IsMember({"ds_sync", "moshpit", "shadow_sync"}))
                     ->excludes(svg);
  sub->add_option("--full-every", q.full_every, "Every so many steps is exact; 0: none")
      ->check(CLI::Range(0, 1'000'000))
      ->needs(policy)
      ->capture_default_str();
  sub->add_option("--momentum", q.momentum, "Of the job's optimizer")
      ->check(CLI::Range(0.0, 0.9999))
      ->needs(policy);
  sub->add_option("--max-deviation", q.options.max_deviation, "Of a node, in units of sigma^2")
      ->check(CLI::Range(1e-3, 1e3))
      ->needs(policy)
      ->capture_default_str();
  sub->add_option("--dimensions", q.options.dimensions, "Of moshpit's grid; 0: best")
      ->check(CLI::Range(0, 16))
      ->needs(policy);
  sub->add_option("--delta", q.options.delta, "shadow_sync: part of the difference to correct")
      ->check(CLI::Range(0.01, 1.99))
      ->needs(policy)
      ->capture_default_str();
  sub->add_option("--rule", o->rule, "shadow_sync: as RIFFLE_SHADOW_RULE, whose numbers hold")
      ->check(CLI::IsMember({"delta", "interpolation", "bmuf", "easgd", "fir"}))
      ->needs(policy);
  sub->add_option("--round-steps", q.options.round_steps, "shadow_sync: steps per round")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(policy)
      ->capture_default_str();
  sub->add_option("--seed", q.options.seed, "Of the labels that nodes take")
      ->needs(policy)
      ->capture_default_str();
  sub->footer(
      "The first line names what limits. Exit code 0: planned; 2: a bad file or option.\n"
      "Examples: riffle plan --profile racks8 --bytes 32M\n"
      "          riffle plan --fabric cluster.toml --nodes node01,node02,node07 --svg plan.svg\n"
      "          riffle plan --profile racks8 --bytes 32M --policy ds_sync");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
