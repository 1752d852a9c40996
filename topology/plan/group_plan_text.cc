#include <cstdio>

#include "topology/plan/group_plan.h"

namespace riffle {
namespace {

const char* name_of(Pattern pattern) { return pattern == Pattern::kRing ? "ring" : "direct"; }

std::string percent(std::uint64_t units) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.4g%%", 100.0 * static_cast<double>(units) / kShareUnits);
  return text;
}

template <class T>
std::string join(const std::vector<T>& values) {
  std::string text;
  for (const T& v : values) text += (text.empty() ? "" : ",") + std::to_string(v);
  return text;
}

std::string quoted(const std::string& s) {
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

std::string to_json(const Group& group) {
  return std::string("{\"pattern\":\"") + name_of(group.pattern) + "\",\"members\":[" +
         join(group.members) + "],\"cuts\":[" + join(group.cuts) + "]}";
}

}  // namespace

// One line per group: what part of the buffer, and in brackets what part of it each member ends
// with.
std::string to_text(const GroupPlan& plan) {
  std::string text = std::to_string(plan.nodes) + " nodes, " + std::to_string(plan.levels.size()) +
                     (plan.levels.size() == 1 ? " level\n" : " levels\n");
  for (std::size_t l = 0; l < plan.levels.size(); ++l) {
    text += "level " + std::to_string(l) + "\n";
    for (const Group& group : plan.levels[l].groups) {
      text += std::string("  ") + name_of(group.pattern) + " on " +
              percent(group.end() - group.begin()) + " from " + percent(group.begin()) + ":";
      for (std::size_t j = 0; j < group.members.size(); ++j) {
        text += " " + std::to_string(group.members[j]) + " [" +
                percent(group.cuts[j + 1] - group.cuts[j]) + "]";
      }
      text += "\n";
    }
  }
  return text;
}

std::string to_json(const PlanSet& plans) {
  std::string text = "{\"name\":" + quoted(plans.name) +
                     ",\"units\":" + std::to_string(kShareUnits) + ",\"lanes\":[";
  for (std::size_t i = 0; i < plans.lanes.size(); ++i) {
    const GroupPlan& plan = plans.lanes[i];
    text +=
        std::string(i ? "," : "") + "{\"nodes\":" + std::to_string(plan.nodes) + ",\"levels\":[";
    for (std::size_t l = 0; l < plan.levels.size(); ++l) {
      text += std::string(l ? "," : "") + "[";
      const auto& groups = plan.levels[l].groups;
      for (std::size_t g = 0; g < groups.size(); ++g) text += (g ? "," : "") + to_json(groups[g]);
      text += "]";
    }
    text += "]}";
  }
  return text + "]}";
}

}  // namespace riffle
