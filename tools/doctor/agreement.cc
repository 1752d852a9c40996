#include "tools/doctor/agreement.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>

#include "plugin/transport/handshake/stream_set.h"

namespace riffle::tools {
namespace {

constexpr std::uint64_t kLinks = 2;  // to each node: one that communicators share, one of NET's
constexpr std::uint64_t kOtherFiles = 256;  // of NCCL and the job itself
constexpr std::size_t kNamed = 6;           // hosts that a sentence names; the others are counted

using Hosts = std::vector<std::string>;

std::string names_of(const Hosts& hosts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + hosts[i];
  }
  if (hosts.size() > kNamed) text += " and " + std::to_string(hosts.size() - kNamed) + " others";
  return text;
}

// "1 on node2; 2 on node0, node1", what most have first. Empty: all have the same.
std::string differences(const std::vector<HostReport>& reports,
                        const std::function<std::string(const HostReport&)>& value_of) {
  std::map<std::string, Hosts> hosts;
  for (const HostReport& report : reports) hosts[value_of(report)].push_back(report.host);
  if (hosts.size() < 2) return "";
  std::vector<std::pair<std::string, Hosts>> sides(hosts.begin(), hosts.end());
  std::ranges::stable_sort(sides, std::greater(),
                           [](const auto& side) { return side.second.size(); });
  std::string text;
  for (const auto& [value, names] : sides) {
    text +=
        (text.empty() ? "" : "; ") + (value.empty() ? "none" : value) + " on " + names_of(names);
  }
  return text;
}

std::uint64_t files_of_a_job(const HostReport& report, std::size_t hosts) {
  const auto setting = report.settings.find("RIFFLE_STREAMS");
  const int wanted = setting == report.settings.end()
                         ? 0
                         : std::clamp(std::atoi(setting->second.c_str()), 0, kMaxStreams);
  const int peers = static_cast<int>(hosts) - 1;
  return kLinks * static_cast<std::uint64_t>(peers * streams_to_each_of(peers, wanted)) +
         kOtherFiles;
}

void check_files(const std::vector<HostReport>& reports, Verdicts* verdicts) {
  std::map<std::uint64_t, Hosts> too_few;  // by what they need
  std::uint64_t least = ~std::uint64_t{0};
  for (const HostReport& report : reports) {
    const std::uint64_t needed = files_of_a_job(report, reports.size());
    if (report.files == 0 || report.files >= needed) continue;
    too_few[needed].push_back(report.host);
    least = std::min(least, report.files);
  }
  for (const auto& [needed, hosts] : too_few) {
    verdicts->problem(names_of(hosts) + ": a job may open " + std::to_string(least) +
                          " files; one of " + std::to_string(reports.size()) + " nodes takes " +
                          std::to_string(needed),
                      "have the administrator raise the hard limit (ulimit -Hn)");
  }
}

}  // namespace

void check_agreement(const std::vector<HostReport>& reports, Verdicts* verdicts) {
  std::map<std::pair<std::string, std::string>, Hosts> problems;
  std::set<std::string> settings;
  for (const HostReport& report : reports) {
    for (const auto& problem : report.problems) problems[problem].push_back(report.host);
    for (const auto& [name, value] : report.settings) settings.insert(name);
  }
  for (const auto& [problem, hosts] : problems) {
    verdicts->problem(names_of(hosts) + ": " + problem.first, problem.second);
  }
  const auto compare = [&](const std::string& what, const std::string& remedy, const auto& value) {
    const std::string text = differences(reports, value);
    if (!text.empty()) verdicts->problem(what + " differs: " + text, remedy);
  };
  compare("Riffle's version", "install the same version everywhere",
          [](const HostReport& r) { return r.version; });
  compare("the content of libnccl-net-riffle.so", "install the same build everywhere",
          [](const HostReport& r) { return r.build; });
  compare("NCCL's release", "load the same NCCL everywhere",
          [](const HostReport& r) { return r.nccl; });
  check_files(reports, verdicts);
  const std::string mtus = differences(reports, [](const HostReport& r) { return r.mtu; });
  if (!mtus.empty())
    verdicts->note("MTU differs: " + mtus + "; between them the smaller one holds");
  for (const std::string& name : settings) {
    compare(name, "set " + name + " alike on all nodes", [&name](const HostReport& r) {
      const auto at = r.settings.find(name);
      return at == r.settings.end() ? std::string() : at->second;
    });
  }
}

std::string table_of(const std::vector<HostReport>& reports) {
  std::vector<std::vector<std::string>> rows = {{"host", "riffle", "build", "NCCL", "problems"}};
  for (const HostReport& r : reports) {
    rows.push_back({r.host, r.version, r.build.empty() ? "none" : r.build,
                    r.nccl.empty() ? "unknown" : r.nccl, std::to_string(r.problems.size())});
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    }
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace riffle::tools
