#include <cstdio>

#include "topology/base/printed.h"

#include "topology/plan/group_plan.h"

namespace riffle {
namespace {

std::string percent(std::uint64_t units) {
  return printed("%.4g%%", 100.0 * static_cast<double>(units) / kShareUnits);
}

// The texts of all items with commas between them.
template <class Items, class Text>
std::string list(const Items& items, Text text_of) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ',';
    text += text_of(item);
  }
  return text;
}

std::string quoted_json(const std::string& s) {
  std::string text = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      text += escape;
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string json_of(const Group& group) {
  std::string text = R"({"pattern":")";
  text += exchange_of(group.pattern).name();
  text += R"(","members":[)" + list(group.members, [](int m) { return std::to_string(m); });
  text += R"(],"cuts":[)" + list(group.cuts, [](Share c) { return std::to_string(c); });
  return text + "]}";
}

std::string json_of(const Level& level) {
  std::string text = "[";
  text += list(level.groups, [](const Group& g) { return json_of(g); });
  return text + "]";
}

std::string json_of(const GroupPlan& plan) {
  std::string text = R"({"nodes":)";
  text += std::to_string(plan.nodes);
  text += R"(,"levels":[)" + list(plan.levels, [](const Level& l) { return json_of(l); });
  return text + "]}";
}

}  // namespace

// One line per group: its part of the buffer, and in brackets what each member owns in the end.
std::string to_text(const GroupPlan& plan) {
  std::string text = std::to_string(plan.nodes) + " nodes, " + std::to_string(plan.levels.size()) +
                     (plan.levels.size() == 1 ? " level\n" : " levels\n");
  for (std::size_t l = 0; l < plan.levels.size(); ++l) {
    text += "level " + std::to_string(l) + "\n";
    for (const Group& group : plan.levels[l].groups) {
      text += "  ";
      text += exchange_of(group.pattern).name();
      text += " on " + percent(group.end() - group.begin()) + " from " + percent(group.begin());
      text += ":";
      for (std::size_t j = 0; j < group.members.size(); ++j) {
        text += ' ';
        text += std::to_string(group.members[j]);
        text += " [" + percent(group.cuts[j + 1] - group.cuts[j]) + "]";
      }
      text += "\n";
    }
  }
  return text;
}

std::string to_json(const PlanSet& plans) {
  std::string text = R"({"name":)";
  text += quoted_json(plans.name);
  text += R"(,"units":)" + std::to_string(kShareUnits);
  text += R"(,"chunk_bytes":)" + std::to_string(plans.chunk_bytes);
  text += R"(,"busy_bytes":)" + std::to_string(plans.busy_bytes);
  const auto plan_list = [](const std::vector<GroupPlan>& plans_in_it) {
    return "[" + list(plans_in_it, [](const GroupPlan& p) { return json_of(p); }) + "]";
  };
  text += R"(,"lanes":)" + plan_list(plans.lanes);
  if (const SmallPlans& small = plans.small; !small.is_empty()) {
    text += R"(,"small":{"name":)" + quoted_json(small.name);
    text += R"(,"bytes":)" + std::to_string(small.bytes);
    text += R"(,"lanes":)" + plan_list(small.lanes) + "}";
  }
  if (const RelaxedPlans& r = plans.relaxed; !r.is_empty()) {
    text += R"(,"relaxed":{"steps":)" + std::to_string(r.steps);
    text += R"(,"lanes":)" + std::to_string(r.lanes);
    text += R"(,"partitions":)" + plan_list(r.partitions);
    text += R"(,"table":[)";
    text += list(r.table, [](std::uint32_t entry) { return std::to_string(entry); }) + "]}";
  }
  return text + "}";
}

}  // namespace riffle
