// An explanation, human-readable and as JSON.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tools/explain/explanation.h"
#include "tools/explain/prediction.h"
#include "tools/numbers.h"

namespace riffle::tools {
namespace {

constexpr std::size_t kShownResources = 6;
constexpr std::size_t kShownWaits = 8;

// Times come from files. UTC, as hosts of one job may have several zones.
std::string utc_text(double t) {
  constexpr double kFarFuture = 253'402'300'800;  // the year 10000
  if (!(t > 0 && t < kFarFuture)) return "?";
  const auto seconds = static_cast<std::time_t>(t);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%F %T", &parts)};
}

std::string summary(const Explanation& e) {
  std::uint64_t count = 0;
  for (const auto& [up_to, totals] : e.sizes) count += totals.count;
  std::string text = origin_text(e);
  if (!text.empty()) text += "\n";
  text += printed("%zu nodes, %d communicator%s, records of %d node%s; ", e.hosts.size(),
                  e.communicators, e.communicators == 1 ? "" : "s", e.recorded_nodes,
                  e.recorded_nodes == 1 ? "" : "s");
  text += printed("%llu all-reduce calls, %s, in %s of %s (%.0f %%)\n",
                  static_cast<unsigned long long>(count), bytes_text(e.bytes).c_str(),
                  seconds_text(e.active_s).c_str(), seconds_text(e.wall_s).c_str(),
                  e.wall_s > 0 ? 100 * e.active_s / e.wall_s : 0.0);
  if (e.since_last_plan) text += "since the last plan change:\n";
  if (e.bound_s) {
    text += printed(
        "bound: no exact algorithm moves these bytes in less than %s (payload at MTU "
        "1500)\n",
        seconds_text(*e.bound_s).c_str());
  }
  return text;
}

std::string resources(const Explanation& e, const Colours& colours) {
  if (e.resources.empty()) return "";
  std::string text = printed("\n%-36s %14s %14s %8s\n", "link", "rate", "carried", "in use");
  for (std::size_t i = 0; i < e.resources.size() && i < kShownResources; ++i) {
    const Resource& r = e.resources[i];
    const std::string line = printed("%-36s %14s %14s %6.0f %%", r.name.c_str(),
                                     r.rate_mbps > 0 ? rate_text(r.rate_mbps).c_str() : "not known",
                                     rate_text(r.carried_mbps).c_str(), 100 * r.share);
    text += (i == 0 ? colours.bold(line) : line) + "\n";
  }
  if (e.resources.size() > kShownResources) {
    text += printed("%zu more, in use %.0f %% or less\n", e.resources.size() - kShownResources,
                    100 * e.resources[kShownResources].share);
  }
  return text;
}

// Nodes that wait for the same one stand in one line.
std::string waits(const Explanation& e) {
  std::map<int, std::vector<const Wait*>> by;
  for (const Wait& w : e.waits) by[w.by].push_back(&w);
  std::vector<std::pair<int, std::vector<const Wait*>>> order(by.begin(), by.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  if (order.empty()) return "";
  std::string text =
      "\nwho waits for whom (share of a node's groups whose last contribution came "
      "from there)\n";
  for (std::size_t i = 0; i < order.size() && i < kShownWaits; ++i) {
    const auto& [on, waiting] = order[i];
    double least = 1, most = 0;
    std::string names;
    for (std::size_t k = 0; k < waiting.size(); ++k) {
      least = std::min(least, waiting[k]->share);
      most = std::max(most, waiting[k]->share);
      if (k < 4) names += (k > 0 ? ", " : "") + e.hosts[static_cast<std::size_t>(waiting[k]->node)];
      if (k == 4) names += ", ...";
    }
    text += printed("  %d node%s (%s) wait%s for %s: ", static_cast<int>(waiting.size()),
                    waiting.size() == 1 ? "" : "s", names.c_str(), waiting.size() == 1 ? "s" : "",
                    e.hosts[static_cast<std::size_t>(on)].c_str());
    text += least == most ? printed("%.0f %%\n", 100 * most)
                          : printed("%.0f to %.0f %%\n", 100 * least, 100 * most);
  }
  return text;
}

std::string sizes(const Explanation& e) {
  if (e.sizes.empty()) return "";
  std::string text = printed("\n%-20s %10s %12s %12s %12s %12s %8s\n", "all-reduce calls", "count",
                             "mean", "median", "99 %", "longest", "of time");
  double all_us = 0;
  for (const auto& [up_to, t] : e.sizes) all_us += static_cast<double>(t.total_us);
  for (const auto& [up_to, t] : e.sizes) {
    const double mean = static_cast<double>(t.total_us) / static_cast<double>(t.count);
    text += printed("%-20s %10llu %12s %12s %12s %12s %6.0f %%\n",
                    ("up to " + bytes_text(up_to)).c_str(),
                    static_cast<unsigned long long>(t.count), us_text(mean).c_str(),
                    us_text(t.quantile_us(0.5)).c_str(), us_text(t.quantile_us(0.99)).c_str(),
                    us_text(static_cast<double>(t.max_us)).c_str(),
                    all_us > 0 ? 100 * static_cast<double>(t.total_us) / all_us : 0.0);
  }
  return text + kCallsAreSlices + "\n";
}

std::string plans(const Explanation& e) {
  if (e.plans.empty()) return "";
  std::string text = "\nplans\n";
  for (const PlanEvent& p : e.plans) {
    text += printed("  %+8.1f s, from chunk %llu, because of %s: %s\n", p.t,
                    static_cast<unsigned long long>(p.from_chunk), cause_text(p).c_str(),
                    p.name.c_str());
    text += "             " + p.reason + "\n";
  }
  return text;
}

std::string modes(const Explanation& e) {
  std::string text;
  for (const ModeChange& change : e.modes) {
    const ModeEvent& m = change.event;
    text += printed("  %+8.1f s, ", m.t);
    // Calls are counted per communicator.
    if (e.communicators > 1) text += printed("communicator %d: ", change.communicator);
    const std::string rule = m.rule.empty() ? "" : ", rule " + m.rule + ",";
    text += printed("%s%s from call %llu on: %s\n", m.mode.c_str(), rule.c_str(),
                    static_cast<unsigned long long>(m.from_call), m.cause.c_str());
  }
  if (e.relaxed && e.relaxed->calls > 0) {
    const RelaxedUse& r = *e.relaxed;
    text += "  " + std::to_string(r.calls) + " relaxed calls on all nodes, " +
            std::to_string(r.full_calls) + " of them over all nodes\n";
    if (r.sparse_chunks > 0) {
      text += printed(
          "  sparse: %llu chunks, of every gradient element %.3g bytes sent; %.3g ms of processor "
          "per chunk; %llu done again densely\n",
          static_cast<unsigned long long>(r.sparse_chunks),
          static_cast<double>(r.sparse_bytes) / static_cast<double>(r.sparse_elements),
          static_cast<double>(r.sparse_work_us) / 1e3 / static_cast<double>(r.sparse_chunks),
          static_cast<unsigned long long>(r.redone));
    }
    if (r.rounds > 0) {
      text += "  " + std::to_string(r.rounds) + " rounds in the background, " +
              std::to_string(r.waits) + " of them waited for\n";
    }
    if (r.corrections > 0) {
      text +=
          printed("  sync gap: corrections came %.1f steps after their snapshot, at most %llu\n",
                  r.mean_gap(), static_cast<unsigned long long>(r.longest_gap));
    }
    const auto fell_back = [&text](std::uint64_t n, const char* why) {
      if (n > 0) text += "  " + std::to_string(n) + " " + why + "\n";
    };
    fell_back(r.doubts, "calls kept out, not certain which gradients they held");
    fell_back(r.mismatches, "chunks kept, as digests in their group did not match");
    fell_back(r.not_finite, "chunks with gradients that were not finite");
    fell_back(r.brought, "exact calls took along what a sparse mode had left");
    fell_back(r.deviations, "times the mode ended as the calls changed");
  }
  return text.empty() ? "" : "\nmodes\n" + text;
}

std::string losses(const Explanation& e) {
  std::string text;
  for (const Loss& loss : e.losses) {
    text += printed("  %+8.1f s, ", loss.event.t);
    if (e.communicators > 1) text += printed("communicator %d: ", loss.communicator);
    text += lost_text(e, loss) + printed("; %d of %d nodes went on, %.0f ms after it was noticed\n",
                                         loss.event.left, static_cast<int>(e.hosts.size()),
                                         loss.slowest_ms);
  }
  return text.empty() ? "" : "\nlost nodes\n" + text;
}

nlohmann::json json_of(const Explanation& e) {
  using nlohmann::json;
  json out = {{"headline", e.headline},
              {"slurm_job_id", e.slurm_job_id},
              {"version", e.version},
              {"connected_unix_us", 1e6 * e.connected_t},
              {"newest_unix_us", 1e6 * e.newest_t},
              {"hosts", e.hosts},
              {"communicators", e.communicators},
              {"recorded_nodes", e.recorded_nodes},
              {"wall_us", 1e6 * e.wall_s},
              {"active_us", 1e6 * e.active_s},
              {"bytes", e.bytes},
              {"bound_us", nullptr},
              {"x_bound", nullptr},
              {"x_predicted", nullptr},
              {"since_last_plan", e.since_last_plan},
              {"resources", json::array()},
              {"waits", json::array()},
              {"sizes", json::array()},
              {"plans", json::array()},
              {"modes", json::array()},
              {"losses", json::array()},
              {"relaxed", nullptr},
              {"timeline", json::array()},
              {"link_mbps", e.link_mbps},
              {"link_busy", e.link_busy},
              {"failures", e.failures},
              {"notes", e.notes}};
  if (e.bound_s) out["bound_us"] = 1e6 * *e.bound_s;
  if (e.x_bound) out["x_bound"] = *e.x_bound;
  if (e.x_predicted) out["x_predicted"] = *e.x_predicted;
  for (const Resource& r : e.resources) {
    out["resources"].push_back({{"name", r.name},
                                {"rate_mbps", r.rate_mbps},
                                {"carried_mbps", r.carried_mbps},
                                {"share", r.share}});
  }
  for (const Wait& w : e.waits) {
    out["waits"].push_back({{"node", w.node}, {"by", w.by}, {"share", w.share}});
  }
  for (const auto& [up_to, t] : e.sizes) {
    out["sizes"].push_back({{"up_to_bytes", up_to},
                            {"count", t.count},
                            {"bytes", t.bytes},
                            {"total_us", t.total_us},
                            {"max_us", t.max_us},
                            {"median_us", t.quantile_us(0.5)},
                            {"p99_us", t.quantile_us(0.99)}});
  }
  for (const PlanEvent& p : e.plans) {
    out["plans"].push_back({{"at_us", 1e6 * p.t},
                            {"from_chunk", p.from_chunk},
                            {"cause", p.cause},
                            {"trigger", p.trigger},
                            {"name", p.name},
                            {"digest", p.digest},
                            {"reason", p.reason}});
  }
  for (const auto& [communicator, m] : e.modes) {
    out["modes"].push_back({{"at_us", 1e6 * m.t},
                            {"communicator", communicator},
                            {"from_call", m.from_call},
                            {"mode", m.mode},
                            {"cause", m.cause},
                            {"rule", m.rule}});
  }
  for (const Loss& loss : e.losses) {
    json lost = json::array();
    for (const auto& [rank, why] : loss.event.lost) lost.push_back({{"rank", rank}, {"why", why}});
    out["losses"].push_back({{"at_us", 1e6 * loss.event.t},
                             {"communicator", loss.communicator},
                             {"lost", std::move(lost)},
                             {"left", loss.event.left},
                             {"recovery_us", 1e3 * loss.slowest_ms}});
  }
  if (e.relaxed) {
    const RelaxedUse& r = *e.relaxed;
    out["relaxed"] = {{"calls", r.calls},
                      {"full_calls", r.full_calls},
                      {"doubts", r.doubts},
                      {"mismatches", r.mismatches},
                      {"not_finite", r.not_finite},
                      {"deviations", r.deviations},
                      {"rounds", r.rounds},
                      {"waits", r.waits},
                      {"mean_gap", r.mean_gap()},
                      {"longest_gap", r.longest_gap},
                      {"sparse_chunks", r.sparse_chunks},
                      {"redone", r.redone},
                      {"sparse_elements", r.sparse_elements},
                      {"sparse_bytes", r.sparse_bytes},
                      {"sparse_work_us", r.sparse_work_us},
                      {"sparse_span_us", r.sparse_span_us},
                      {"brought", r.brought}};
  }
  for (const TimePoint& p : e.timeline) {
    out["timeline"].push_back({{"at_us", 1e6 * p.t}, {"mbps", p.mbps}, {"active", p.active}});
  }
  return out;
}

}  // namespace

std::string origin_text(const Explanation& e) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!e.slurm_job_id.empty()) add("job " + e.slurm_job_id);
  if (!e.version.empty()) add("riffle " + e.version);
  if (e.connected_t > 0) {
    const std::string begin = utc_text(e.connected_t);
    const std::string end = utc_text(std::max(e.newest_t, e.connected_t));
    const bool is_same_day = begin.substr(0, 10) == end.substr(0, 10) && end.size() > 11;
    add(begin + " to " + (is_same_day ? end.substr(11) : end) + " UTC");
  }
  return text;
}

std::string lost_text(const Explanation& e, const Loss& loss) {
  std::string who;
  for (const auto& [rank, why] : loss.event.lost) {
    who += (who.empty() ? "" : ", ") + e.hosts[static_cast<std::size_t>(rank)] + " (" + why + ")";
  }
  return who;
}

std::string to_text(const Explanation& e, const Colours& colours) {
  std::string text = colours.bold(e.headline) + "\n\n" + summary(e) + resources(e, colours) +
                     waits(e) + sizes(e) + plans(e) + modes(e) + losses(e);
  for (const std::string& why : e.failures) text += colours.red("failed: ") + why + "\n";
  for (const std::string& note : e.notes) text += "note: " + note + "\n";
  return text;
}

std::string to_json(const std::vector<Explanation>& all) {
  nlohmann::json out = {{"schema", "riffle-explain-1"}, {"explanations", nlohmann::json::array()}};
  for (const Explanation& e : all) out["explanations"].push_back(json_of(e));
  return out.dump(2) + "\n";
}

}  // namespace riffle::tools
