#include "tools/live/top_text.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "tools/numbers.h"
#include "topology/base/printed.h"

namespace riffle::tools {
namespace {

// A node this much of whose peers' waiting is for it, and this many times what is even.
constexpr double kWaitedFor = 0.3, kOverEven = 2;
constexpr double kStaleS = 10;

// Names and reasons come from files: nothing in them may move the cursor.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string age_text(double s) {
  if (s < 120) return printed("%.0f s", std::max(0.0, s));
  if (s < 7200) return printed("%.0f min", s / 60);
  return s < 172800 ? printed("%.0f h", s / 3600) : printed("%.0f days", s / 86400);
}

std::string job_text(const LiveView& view) {
  std::string text = view.slurm_job_id.empty() ? "" : "job " + view.slurm_job_id + ", ";
  return text + counted(view.nodes.size(), "node") + ", communicator " + view.comm;
}

std::string window_text(const LiveView& view, double now_t) {
  const Explanation& e = view.now;
  if (view.newest_t == 0) return "no sample yet\n";
  std::uint64_t calls = 0;
  for (const auto& [up_to, totals] : e.sizes) calls += totals.count;
  std::string text =
      printed("%s, %s, ", counted(calls, "all-reduce call").c_str(), bytes_text(e.bytes).c_str());
  text += printed("%.0f %% of %.0f s in collectives",
                  e.wall_s > 0 ? 100 * e.active_s / e.wall_s : 0.0, e.wall_s);
  if (e.x_bound) text += printed("; %.2f x the bound", *e.x_bound);
  if (e.x_predicted)
    text += printed(", %.2f x what the plan was predicted to take", *e.x_predicted);
  const double age_s = now_t - view.newest_t;
  if (age_s > kStaleS) text += "; nothing new for " + age_text(age_s);
  return text + "\n";
}

std::string plan_text(const LiveView& view, double now_t) {
  if (!view.plan) return "";
  const PlanEvent& plan = *view.plan;
  std::string text =
      printed("plan %s since %s", printable(plan.name).c_str(), age_text(now_t - plan.t).c_str());
  text += plan.cause == "connect" ? ", the first" : ", because " + printable(plan.cause);
  return text + "\n  " + printable(plan.reason) + "\n";
}

std::string trouble_text(const LiveView& view, double now_t, const Colours& colours) {
  std::string text;
  for (const Loss& loss : view.now.losses) {
    text += colours.red("lost: ") + printable(lost_text(view.now, loss));
    text += printed(" %s ago; %d of %zu nodes went on\n",
                    age_text(now_t - view.begin_t - loss.event.t).c_str(), loss.event.left,
                    view.nodes.size());
  }
  for (const std::string& why : view.now.failures) {
    text += colours.red("failed: ") + printable(why) + "\n";
  }
  return text;
}

std::string side_text(const LiveSide& side) {
  const std::string rate = side.rate_mbps > 0 ? rate_text(side.rate_mbps) : "not known";
  return printed(" %12s %12s %5.0f %%", rate_text(side.mbps).c_str(), rate.c_str(),
                 100 * side.share);
}

bool is_waited_for(const LiveNode& node, std::size_t nodes) {
  return nodes > 2 && node.waited_for >= kWaitedFor &&
         node.waited_for >= kOverEven / static_cast<double>(nodes);
}

std::string node_text(const LiveNode& node, std::size_t nodes, double now_t,
                      const Colours& colours) {
  std::string line = printed("%-20s", printable(node.name).c_str()) + side_text(node.out) +
                     side_text(node.in) + printed(" %8.0f %%", 100 * node.waited_for);
  if (!node.lost.empty()) return colours.red(line + "  lost: " + printable(node.lost)) + "\n";
  if (!node.sample_t) return line + "  no record\n";
  const double age_s = now_t - *node.sample_t;
  if (age_s > kStaleS) line += "  silent for " + age_text(age_s);
  return (is_waited_for(node, nodes) ? colours.yellow(line) : line) + "\n";
}

// Ranks in their order; of too many nodes the most remarkable.
std::vector<std::size_t> shown(const std::vector<LiveNode>& nodes) {
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (nodes.size() <= kShownNodes) return order;
  const auto weight = [&](std::size_t n) {
    const LiveNode& node = nodes[n];
    if (!node.lost.empty()) return 3.0;
    return node.waited_for + std::max(node.out.share, node.in.share);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
  order.resize(kShownNodes);
  std::sort(order.begin(), order.end());
  return order;
}

std::string nodes_text(const LiveView& view, double now_t, const Colours& colours) {
  std::string text = printed("%-20s %12s %12s %7s %12s %12s %7s %10s\n", "node", "out", "rate",
                             "in use", "in", "rate", "in use", "waited for");
  const std::vector<std::size_t> order = shown(view.nodes);
  for (const std::size_t n : order) {
    text += node_text(view.nodes[n], view.nodes.size(), now_t, colours);
  }
  if (order.size() < view.nodes.size()) {
    text += printed("and %zu more\n", view.nodes.size() - order.size());
  }
  return text;
}

std::string view_text(const LiveView& view, double now_t, const Colours& colours) {
  return colours.bold(printable(view.now.headline)) + "\n" + printable(job_text(view)) + "; " +
         window_text(view, now_t) + plan_text(view, now_t) + trouble_text(view, now_t, colours) +
         "\n" + nodes_text(view, now_t, colours);
}

// All nodes tell the same.
std::string failures_text(const JobRecord& job, const Colours& colours) {
  std::map<std::string, int> nodes;
  for (const NoConnect& f : job.failures) ++nodes[f.comm + ": " + f.why];
  std::string text;
  for (const auto& [what, count] : nodes) {
    text += colours.red("communicator ") + printable(what) + " (" +
            counted(static_cast<std::size_t>(count), "node") + ")\n";
  }
  return text;
}

}  // namespace

std::string to_text(const std::vector<LiveView>& views, const JobRecord& job, double now_t,
                    const Colours& colours) {
  std::string text = failures_text(job, colours);
  for (const LiveView& view : views) {
    if (!text.empty()) text += "\n";
    text += view_text(view, now_t, colours);
  }
  for (const std::string& note : job.notes) text += "note: " + printable(note) + "\n";
  return text;
}

}  // namespace riffle::tools
