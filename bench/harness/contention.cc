#include "bench/harness/contention.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "lab/cluster/neighbour.h"
#include "lab/cluster/network.h"
#include "topology/base/printed.h"
#include "topology/plan/planner.h"

namespace riffle::bench {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<Series> contend(Session& session, const Question& question, const ContentionOptions& options,
                       const std::function<void(int done)>& progress) {
  Series series;
  series.network = session.network();
  series.congestion = session.congestion();
  const cluster::Profile& profile = session.profile();
  const double to_payload =
      static_cast<double>(cluster::kFrameBytes) / static_cast<double>(cluster::kPayloadBytes);
  const double calm_us = bound_us(fabric_of(profile), question.bytes) * to_payload;
  const double contended_us = bound_us(contended_fabric_of(profile), question.bytes) * to_payload;
  Question one = question;
  one.iters = 1;
  one.warmup = 0;
  const auto start = Clock::now();
  std::unique_ptr<cluster::NeighbourFlow> flow;
  (void)session.new_plan_changes();
  const int last = options.before + options.during + options.after;
  for (int i = 0; i < last; ++i) {
    if (i == options.before) {
      auto started = cluster::NeighbourFlow::start(*session.site().cluster);
      if (!started) return started.status();
      flow = std::move(*started);
    }
    if (i == options.before + options.during) flow.reset();
    const auto row = session.ask(one, [](int) {});
    if (!row) return row.status();
    Moment moment;
    moment.end_s = std::chrono::duration<double>(Clock::now() - start).count();
    moment.time_us = row->time_us;
    moment.neighbour = flow != nullptr;
    moment.bound_us = moment.neighbour ? contended_us : calm_us;
    moment.wrong = row->wrong;
    moment.changes = session.new_plan_changes();
    series.moments.push_back(std::move(moment));
    progress(i + 1);
  }
  return series;
}

double median_x_bound(const Series& series, std::size_t first, std::size_t skip,
                      std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = first + skip; i < first + skip + count && i < series.moments.size(); ++i) {
    values.push_back(series.moments[i].x_bound());
  }
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::string contention_table(const Series& series, const ContentionOptions& options) {
  std::string text = printed("# %s: time over the bound of the network as it is, one by one\n",
                             series.peer.c_str());
  const auto phase = [&](const char* name, int first, int count) {
    text += printed("# %-22s", name);
    for (int i = first; i < first + count; ++i) {
      text += printed(" %.2f", series.moments[static_cast<std::size_t>(i)].x_bound());
    }
    text += "\n";
    for (int i = first; i < first + count; ++i) {
      for (const std::string& change : series.moments[static_cast<std::size_t>(i)].changes) {
        text += printed("#   after %d: %s\n", i - first + 1, change.c_str());
      }
    }
  };
  phase("before", 0, options.before);
  phase("with the foreign flow", options.before, options.during);
  phase("after it", options.before + options.during, options.after);
  constexpr std::size_t kSettled = 20;  // all-reduces that the plan has to follow
  const auto before = static_cast<std::size_t>(options.before);
  const std::size_t during = static_cast<std::size_t>(options.during);
  const auto settled = [&](std::size_t first, std::size_t count) -> std::string {
    if (count <= kSettled) return "not reached";
    return printed("%.3f", median_x_bound(series, first, kSettled, count - kSettled));
  };
  text += printed(
      "# %s x bound (medians): before %.3f; from the 21st on: with the foreign flow %s, ",
      series.peer.c_str(), median_x_bound(series, 0, 0, before), settled(before, during).c_str());
  text += "after it " + settled(before + during, static_cast<std::size_t>(options.after)) + "\n";
  return text;
}

std::string to_json(const std::vector<Series>& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const Series& series : all) {
    nlohmann::json moments = nlohmann::json::array();
    for (const Moment& m : series.moments) {
      moments.push_back({{"end_us", 1e6 * m.end_s},
                         {"time_us", m.time_us},
                         {"bound_us", m.bound_us},
                         {"neighbour", m.neighbour},
                         {"wrong", m.wrong},
                         {"changes", m.changes}});
    }
    list.push_back({{"schema", "riffle-bench-series-1"},
                    {"peer", series.peer},
                    {"network", series.network},
                    {"congestion", series.congestion},
                    {"mode", series.mode},
                    {"series", moments}});
  }
  return list.dump(1) + "\n";
}

}  // namespace riffle::bench
