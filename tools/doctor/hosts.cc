#include "tools/doctor/hosts.h"

#include <cstdlib>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "plugin/config/config.h"
#include "tools/doctor/agreement.h"
#include "tools/numbers.h"
#include "tools/probe/lead.h"
#include "tools/probe/peer.h"

namespace riffle::tools {
namespace {

constexpr std::int64_t kClockSlackS = 5;

std::string tenths(double value) {
  const auto tenths = std::llround(10 * value);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

// Between `begun` and `ended` it looked at its clock.
void check_clock(const HostReport& report, std::int64_t begun, std::int64_t ended,
                 Verdicts& verdicts) {
  const std::int64_t behind = begun - kClockSlackS - report.clock_s;
  const std::int64_t ahead = report.clock_s - ended - kClockSlackS;
  if (behind <= 0 && ahead <= 0) return;
  verdicts.note(report.host + ": its clock is " + std::to_string(std::max(behind, ahead)) +
                " s or more " + (behind > 0 ? "behind" : "ahead of") +
                " this one; log lines and records will not line up");
}

void check_network(Crew& crew, int timeout_ms, bool one_per_host, Verdicts& verdicts) {
  const Result<ProbeFindings> found = lead_probe(crew, timeout_ms, one_per_host);
  if (!found) {
    const std::string why = found.status().message();
    return verdicts.problem(
        "the hosts do not all reach each other: " + why.substr(0, why.find('\n')),
        "let TCP through between all hosts, on all ports");
  }
  if (!found->trouble.empty()) {
    verdicts.problem("measuring the network was cut short: " + found->trouble,
                     "riffle probe shows more");
  }
  verdicts.good("all pairs of " + std::to_string(found->nodes.size()) +
                " hosts connect, network probed in " + tenths(found->seconds) + " s");
  for (const std::string& sentence : found->slow()) verdicts.note(sentence);
}

}  // namespace

int serve_doctor(const Diagnosis& diagnosis, int in, int out) {
  if (!say(out, to_line(report_of(diagnosis)))) return 1;
  unsetenv("RIFFLE_FABRIC");  // the network is measured
  reload_config();
  return serve_probe(in, out);
}

HostsFinding ask_hosts(Crew& crew, int timeout_ms, bool one_per_host) {
  HostsFinding found;
  const std::int64_t begun = std::time(nullptr);
  crew.hear_all(timeout_ms, "waiting for " + counted(crew.members().size(), "host"));
  const std::int64_t ended = std::time(nullptr);
  for (Crew::Member& m : crew.members()) {
    if (!m.absent.empty()) continue;
    Result<HostReport> report = report_from_line(m.lines.front());
    m.lines.erase(m.lines.begin());
    if (!report) {
      crew.dismiss(m, report.status().message());
      continue;
    }
    if (std::ranges::find(found.reports, report->host, &HostReport::host) != found.reports.end()) {
      continue;  // the measurement tells whether that is wrong
    }
    check_clock(*report, begun, ended, found.verdicts);
    found.reports.push_back(std::move(*report));
  }
  check_agreement(found.reports, &found.verdicts);
  if (found.reports.size() > 1) check_network(crew, timeout_ms, one_per_host, found.verdicts);
  for (const auto& [name, why] : absent_hosts(crew)) {
    found.verdicts.problem(name + " takes no part: " + why,
                           "start riffle doctor there by hand, with the job's environment");
  }
  return found;
}

}  // namespace riffle::tools
