#include "tools/doctor/nccl_variables.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "tools/env/quoting.h"

namespace riffle::tools {
namespace {

constexpr int kUsualNodeThreshold = 2;

std::string lower(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

// The part before `mark`, which goes from `text` with it.
std::string_view cut(std::string_view* text, char mark) {
  const std::size_t end = text->find(mark);
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return part;
}

void check_needed(int nccl, const PluginPlace& beside, const JobVariables& variables,
                  Verdicts* verdicts) {
  for (const Export& e : needed_exports(nccl, beside)) {
    if (e.is_list || e.name == "NCCL_NET_PLUGIN") continue;  // check_loading
    const std::string value = variables.value(e.name);
    if (!value.empty() && e.name.ends_with("_PLUGIN")) continue;  // likewise
    if (value == e.value) {
      verdicts->good(variables.said(e.name));
    } else {
      verdicts->problem_for_sh(
          (value.empty() ? e.name + " is not set" : variables.said(e.name)) + ": " + e.why,
          "export " + e.name + "=" + sh_word(e.value));
    }
  }
}

void check_rule(const char* name, std::string_view wanted, const char* what,
                const JobVariables& variables, Verdicts* verdicts) {
  const std::string rule = variables.value(name);
  if (rule.empty()) return;
  if (!allows(rule, wanted)) {
    return variables.problem_unless_unset(
        name, variables.said(name) + " leaves no all-reduce to " + what, verdicts);
  }
  verdicts->note(variables.said(name) + " restricts what the tuner may choose");
}

}  // namespace

bool allows(std::string_view rule, std::string_view wanted) {
  const std::string all = lower(rule);
  std::string_view left = all;
  bool is_allowed = true;  // where no part speaks of all-reduces
  while (!left.empty()) {
    std::string_view part = cut(&left, ';');
    if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
      if (part.substr(0, colon) != "allreduce") continue;
      part.remove_prefix(colon + 1);
    }
    const bool excludes = part.starts_with('^');
    if (excludes) part.remove_prefix(1);
    int named = 0;
    while (!part.empty()) named += cut(&part, ',').starts_with(wanted) ? 1 : 0;
    // CollNet has two forms, and one that is left is enough.
    is_allowed = excludes ? named < (wanted == "collnet" ? 2 : 1) : named > 0;
  }
  return is_allowed;
}

void check_nccl_variables(int nccl, const PluginPlace& beside, bool has_collectives,
                          const JobVariables& variables, Verdicts* verdicts) {
  if (has_collectives) check_needed(nccl, beside, variables, verdicts);
  const std::string net = variables.value("NCCL_NET");
  if (!net.empty() && strcasecmp(net.c_str(), "riffle") != 0) {
    variables.problem_unless_unset(
        "NCCL_NET", variables.said("NCCL_NET") + " selects another network", verdicts);
  }
  if (!has_collectives) return;
  check_rule("NCCL_ALGO", "collnet", "CollNet", variables, verdicts);
  check_rule("NCCL_PROTO", "simple", "CollNet, which needs the protocol Simple", variables,
             verdicts);
  const std::string threshold = variables.value("NCCL_COLLNET_NODE_THRESHOLD");
  if (!threshold.empty() && std::atoi(threshold.c_str()) > kUsualNodeThreshold) {
    verdicts->note(variables.said("NCCL_COLLNET_NODE_THRESHOLD") +
                   ": communicators of fewer nodes never call COLLNET");
  }
}

}  // namespace riffle::tools
