#include "tools/probe/findings.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/draw/heat_map.h"
#include "tools/numbers.h"

namespace riffle::tools {
namespace {

using nlohmann::json;

constexpr double kSlow = 0.8;      // of the median: below that an end is called slow
constexpr double kSlowPair = 0.6;  // of what both ends can do (one sample, and payload only)
constexpr std::size_t kMatrixNodes = 16;
constexpr std::size_t kNamedNodes = 6;
constexpr std::size_t kSlowLines = 12;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_rate(const ProbeFindings& f) {
  std::vector<double> rates;
  for (const auto& node : f.nodes) {
    rates.push_back(node.out_mbps);
    rates.push_back(node.in_mbps);
  }
  return median(std::move(rates));
}

std::string matrix_text(const ProbeFindings& f) {
  if (f.nodes.size() > kMatrixNodes) {
    return "\nthe matrix of all pairs: --svg FILE draws it, --json lists it\n";
  }
  std::string text = "\nMbit/s of payload from row to column\n" + printed("%-14s", "");
  for (const auto& node : f.nodes) text += printed(" %9.9s", node.name.c_str());
  for (std::size_t i = 0; i < f.nodes.size(); ++i) {
    text += printed("\n%-14.14s", f.nodes[i].name.c_str());
    for (const double mbps : f.pair_mbps[i]) {
      text += mbps > 0 ? printed(" %9.0f", mbps) : printed(" %9s", "-");
    }
  }
  return text + "\n";
}

std::string uplink_text(const ProbeFindings::Rack& rack) {
  if (rack.up_mbps <= 0 && rack.down_mbps <= 0) return "no limit found";
  return rate_text(rack.up_mbps) + " up, " + rate_text(rack.down_mbps) + " down";
}

std::string racks_text(const ProbeFindings& f) {
  if (f.racks.size() < 2) return "";
  std::string text = "\n";
  for (std::size_t r = 0; r < f.racks.size(); ++r) {
    text += printed("rack %s (%s, confidence %.0f %%):", f.racks[r].name.c_str(),
                    uplink_text(f.racks[r]).c_str(), 100 * f.racks[r].confidence);
    int shown = 0;
    for (const auto& node : f.nodes) {
      if (node.rack != static_cast<int>(r)) continue;
      if (++shown <= 16) text += " " + node.name;
    }
    text += shown > 16 ? printed(" and %d more\n", shown - 16) : "\n";
  }
  return text;
}

using Slow = std::pair<double, std::string>;  // the smaller the first, the worse

void append_sorted(std::vector<Slow> found, std::vector<std::string>* texts) {
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [share, text] : found) texts->push_back(std::move(text));
}

// The members of a rack, by name; the first few.
std::string members(const ProbeFindings& f, int rack) {
  std::string text;
  std::size_t count = 0;
  for (const auto& node : f.nodes) {
    if (node.rack != rack || ++count > kNamedNodes) continue;
    text += (text.empty() ? "" : ", ") + node.name;
  }
  return count > kNamedNodes ? text + printed(" and %zu more", count - kNamedNodes) : text;
}

std::vector<Slow> slow_uplinks(const ProbeFindings& f) {
  std::vector<Slow> found;
  for (std::size_t r = 0; f.racks.size() > 1 && r < f.racks.size(); ++r) {
    double out = 0, in = 0;
    for (const auto& node : f.nodes) {
      if (node.rack != static_cast<int>(r)) continue;
      out += node.out_mbps;
      in += node.in_mbps;
    }
    const auto consider = [&](const char* what, double mbps, double nodes) {
      if (mbps <= 0 || mbps >= kSlow * nodes) return;
      found.emplace_back(mbps / nodes, std::string(what) + " of rack " + f.racks[r].name + " (" +
                                           members(f, static_cast<int>(r)) +
                                           "): " + rate_text(mbps) + ", where its nodes reach " +
                                           rate_text(nodes) + " together");
    };
    consider("uplink", f.racks[r].up_mbps, out);
    consider("downlink", f.racks[r].down_mbps, in);
  }
  return found;
}

bool crosses_limit(const ProbeFindings& f, std::size_t from, std::size_t to) {
  const int a = f.nodes[from].rack, b = f.nodes[to].rack;
  return a != b && (f.racks[static_cast<std::size_t>(a)].up_mbps > 0 ||
                    f.racks[static_cast<std::size_t>(b)].down_mbps > 0);
}

std::vector<Slow> slow_pairs(const ProbeFindings& f) {
  std::vector<Slow> found;
  for (std::size_t from = 0; from < f.nodes.size(); ++from) {
    for (std::size_t to = 0; to < f.nodes.size(); ++to) {
      const double seen = f.pair_mbps[from][to];
      const double ends = std::min(f.nodes[from].out_mbps, f.nodes[to].in_mbps);
      if (seen <= 0 || seen >= kSlowPair * ends || crosses_limit(f, from, to)) continue;
      found.emplace_back(seen / ends, "path from " + f.nodes[from].name + " to " +
                                          f.nodes[to].name + ": " + rate_text(seen) +
                                          ", where both ends do " + rate_text(ends));
    }
  }
  return found;
}

double to_mbps(std::int64_t kbps) { return static_cast<double>(kbps) / 1000; }
std::int64_t to_kbps(double mbps) { return std::llround(1000 * mbps); }

// Per round its flows: from, to, Mbit/s, 1 if steady, round trip in microseconds, Mbit/s together
// with the others, routers between the two (-1: not known).
json to_rows(const std::vector<probe::Observed>& all) {
  json rounds = json::array();
  for (const probe::Observed& o : all) {
    json flows = json::array();
    for (std::size_t i = 0; i < o.samples.size(); ++i) {
      const probe::Sample& s = o.samples[i];
      flows.push_back({o.round.flows[i].from, o.round.flows[i].to, to_mbps(s.kbps),
                       s.is_steady ? 1 : 0, s.rtt_us, to_mbps(s.together_kbps), s.hops});
    }
    rounds.push_back(std::move(flows));
  }
  return rounds;
}

std::vector<probe::Observed> from_rows(const json& rounds) {
  std::vector<probe::Observed> all;
  for (const json& flows : rounds) {
    probe::Observed& o = all.emplace_back();
    for (const json& f : flows) {
      o.round.flows.push_back({f.at(0), f.at(1)});
      o.samples.push_back({to_kbps(f.at(2)), to_kbps(f.at(5)), f.at(3) == 1, f.at(4), f.at(6)});
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> ProbeFindings::slow() const {
  const double middle = median_rate(*this);
  std::vector<Slow> found;
  const auto consider = [&](const char* what, const std::string& name, double mbps) {
    if (mbps <= 0 || mbps >= kSlow * middle) return;
    found.emplace_back(mbps, printed("%s of node %s: %s, where %s is usual", what, name.c_str(),
                                     rate_text(mbps).c_str(), rate_text(middle).c_str()));
  };
  for (const Node& node : nodes) {
    consider("sending", node.name, node.out_mbps);
    consider("receiving", node.name, node.in_mbps);
  }
  std::vector<std::string> texts;
  append_sorted(slow_uplinks(*this), &texts);
  append_sorted(std::move(found), &texts);
  append_sorted(slow_pairs(*this), &texts);
  return texts;
}

std::string to_json(const ProbeFindings& f) {
  json out = {{"schema", "riffle-probe-1"},
              {"nodes", json::array()},
              {"racks", json::array()},
              {"pair_mbps", f.pair_mbps},
              {"latency_us", f.latency_us},
              {"duration_us", std::llround(1e6 * f.seconds)},
              {"bytes", f.bytes},
              {"rounds", f.rounds},
              {"slow", f.slow()},
              {"toml", f.toml},
              {"trouble", f.trouble},
              {"absent", json::array()},
              {"measured", to_rows(f.measured)}};
  for (const auto& [name, why] : f.absent) out["absent"].push_back({{"name", name}, {"why", why}});
  for (const auto& n : f.nodes) {
    out["nodes"].push_back({{"name", n.name},
                            {"out_mbps", n.out_mbps},
                            {"in_mbps", n.in_mbps},
                            {"confidence", n.confidence},
                            {"rack", n.rack}});
  }
  for (const auto& r : f.racks) {
    out["racks"].push_back({{"name", r.name},
                            {"up_mbps", r.up_mbps},
                            {"down_mbps", r.down_mbps},
                            {"confidence", r.confidence}});
  }
  // Names come from other hosts: bytes that are no UTF-8 must not throw.
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<ProbeFindings> findings_from_json(const std::string& text) {
  ProbeFindings f;
  try {
    const json in = json::parse(text);
    for (const json& n : in.at("nodes")) {
      f.nodes.push_back(
          {n.at("name"), n.at("out_mbps"), n.at("in_mbps"), n.at("confidence"), n.at("rack")});
    }
    for (const json& r : in.at("racks")) {
      f.racks.push_back({r.at("name"), r.at("up_mbps"), r.at("down_mbps"), r.at("confidence")});
    }
    f.pair_mbps = in.at("pair_mbps").get<std::vector<std::vector<double>>>();
    f.latency_us = in.at("latency_us");
    f.seconds = in.at("duration_us").get<double>() / 1e6;
    f.bytes = in.at("bytes");
    f.rounds = in.at("rounds");
    f.toml = in.at("toml");
    f.trouble = in.at("trouble");
    f.measured = from_rows(in.at("measured"));
    for (const json& a : in.at("absent")) f.absent.emplace_back(a.at("name"), a.at("why"));
  } catch (const json::exception& e) {
    return remote_error(std::string("the first host's answer is not understood: ") + e.what());
  }
  bool is_square = f.pair_mbps.size() == f.nodes.size();
  for (const auto& row : f.pair_mbps) is_square &= row.size() == f.nodes.size();
  for (const auto& n : f.nodes) {
    is_square &= n.rack >= 0 && n.rack < static_cast<int>(f.racks.size());
  }
  if (!is_square) return remote_error("the first host's answer does not fit its number of hosts");
  return f;
}

std::string to_text(const ProbeFindings& f, const Colours& colours) {
  std::string text;
  const auto slow = f.slow();
  for (std::size_t i = 0; i < slow.size() && i < kSlowLines; ++i) {
    text += colours.red("slow: ") + colours.bold(slow[i]) + "\n";
  }
  if (slow.size() > kSlowLines) {
    text += printed("and %zu more; --json lists all\n", slow.size() - kSlowLines);
  }
  if (slow.empty()) {
    text += colours.green("nothing is slow: ") + "every node sends and receives about " +
            rate_text(median_rate(f)) + "\n";
  }
  if (!f.trouble.empty()) text += colours.yellow("cut short: ") + f.trouble + "\n";
  for (const auto& [name, why] : f.absent) {
    text += colours.yellow("absent: ") + name + ": " + why + "\n";
  }
  text += racks_text(f);
  text += printed("\n%-24s %14s %14s %12s\n", "node", "sends", "receives", "confidence");
  for (const auto& node : f.nodes) {
    text +=
        printed("%-24s %14s %14s %10.0f %%\n", node.name.c_str(), rate_text(node.out_mbps).c_str(),
                rate_text(node.in_mbps).c_str(), 100 * node.confidence);
  }
  text += matrix_text(f);
  return text + printed("\n%zu nodes, %d rounds, %s in %s; one way takes %.0f us\n", f.nodes.size(),
                        f.rounds, bytes_text(static_cast<std::uint64_t>(f.bytes)).c_str(),
                        seconds_text(f.seconds).c_str(), f.latency_us);
}

std::string to_svg(const ProbeFindings& f) {
  std::vector<double> all;
  for (const auto& row : f.pair_mbps) {
    for (const double mbps : row) {
      if (mbps > 0) all.push_back(mbps);
    }
  }
  const double middle = median(all);
  const auto slow = f.slow();
  HeatMap map;
  map.title =
      "riffle probe: payload from row to column while all others are busy, in Mbit/s; the "
      "median of all pairs is " +
      rate_text(middle);
  map.finding = slow.empty() ? "nothing is slow" : "slow: " + slow.front();
  if (slow.size() > 1) map.finding += printed("; and %zu more", slow.size() - 1);
  map.missing = "not measured";
  // Each range up to this part of the median.
  const std::vector<double> ends = {0.5, 0.7, 0.9, 1.1, 1.3, 1.5, HUGE_VAL};
  map.ranges = {{Paint::kSlow3, "up to half the median"},
                {Paint::kSlow2, "up to 70 %"},
                {Paint::kSlow1, "up to 90 %"},
                {Paint::kEven, "about the median"},
                {Paint::kFast1, "from 110 %"},
                {Paint::kFast2, "from 130 %"},
                {Paint::kFast3, "from 150 %"}};
  for (const auto& node : f.nodes) map.names.push_back(node.name);
  for (const auto& row : f.pair_mbps) {
    map.cells.emplace_back();
    for (const double mbps : row) {
      if (mbps <= 0) {
        map.cells.back().emplace_back();
        continue;
      }
      const auto range = std::lower_bound(ends.begin(), ends.end(), mbps / middle) - ends.begin();
      map.cells.back().push_back(
          HeatMap::Cell{static_cast<std::size_t>(range), printed("%.0f", mbps), rate_text(mbps)});
    }
  }
  return draw(map);
}

}  // namespace riffle::tools
