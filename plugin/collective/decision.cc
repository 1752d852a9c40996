#include "plugin/collective/decision.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "plugin/collective/reduce.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"
#include "plugin/policy/agreement.h"
#include "plugin/transport/device.h"
#include "plugin/version.h"
#include "topology/fabric/fabric_file.h"

namespace riffle {
namespace {

constexpr std::uint64_t kPlannedBytes = 32u << 20;  // the size that plans are compared at
constexpr double kTolerance = 1.03;                 // never slower than NCCL's ring by more

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

// Megabytes per second of `work`, which handles `bytes` bytes per call; about a millisecond.
template <class Work>
std::int64_t measure_mbps(std::size_t bytes, Work work) {
  using Clock = std::chrono::steady_clock;
  work();  // touch the memory first
  const auto begin = Clock::now();
  std::int64_t calls = 0, ns = 0;
  do {
    work();
    ++calls;
    ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  } while (ns < 1'000'000);
  return std::max<std::int64_t>(1, calls * static_cast<std::int64_t>(bytes) * 1000 / ns);
}

void measure_machine(NodeReport* report) {
  constexpr std::size_t kBytes = 128 << 10;  // a piece: in the L2 cache, as in the engine
  std::vector<float> a(kBytes / 4, 1), b(kBytes / 4, 2), out(kBytes / 4);
  const std::array<const void*, 2> operands = {a.data(), b.data()};
  report->reduce_mbps = measure_mbps(2 * kBytes, [&] {
    reduce(out.data(), operands, out.size(), DataType::kFloat32, ReduceOp::kSum);
  });
  report->copy_mbps = measure_mbps(kBytes, [&] { std::memcpy(out.data(), a.data(), kBytes); });
}

std::string who(const NodeReport& r) { return "rank " + std::to_string(r.rank) + " on " + r.host; }

// Empty if all nodes can work together.
std::string find_problem(const std::vector<NodeReport>& reports) {
  for (const NodeReport& r : reports) {
    if (!r.problem.empty()) return who(r) + ": " + r.problem;
  }
  for (const NodeReport& r : reports) {
    if (r.version != reports[0].version) {
      return who(r) + " runs riffle " + r.version + ", " + who(reports[0]) + " runs " +
             reports[0].version + ": install the same version on all nodes";
    }
    const Status same = agreement::compare_knobs(who(r), r.knobs, reports[0].knobs);
    if (!same) return same.message();
  }
  return "";
}

Result<Fabric> fabric_of(const std::vector<NodeReport>& reports) {
  if (config().fabric.empty()) {
    std::int64_t rate = reports[0].rate_kbps;
    for (const NodeReport& r : reports) rate = std::min(rate, r.rate_kbps);
    Fabric fabric = even_fabric(static_cast<int>(reports.size()), rate);
    for (std::size_t i = 0; i < reports.size(); ++i) fabric.nodes[i].name = reports[i].host;
    return fabric;
  }
  std::vector<NodeAliases> names;
  for (const NodeReport& r : reports) names.push_back(r.aliases);
  const Result<LoadedFabric> file = load_fabric(config().fabric, names);
  if (!file) return file.status();
  for (const std::string& note : file->notes) log_warn(note);
  return file->fabric;
}

}  // namespace

NodeReport own_report(int rank, int device, const std::string& job) {
  NodeReport r;
  r.rank = rank;
  r.host = host_name();
  if (!config().node_name.empty()) r.aliases.push_back(config().node_name);
  r.aliases.push_back(r.host);
  const Device& d = devices()[device];
  for (const NicAddress& a : d.addresses) r.aliases.push_back(a.address);
  r.version = kVersion;
  r.knobs = decision_knobs();
  r.rate_kbps = static_cast<std::int64_t>(d.speed_mbps) * 1000;
  measure_machine(&r);
  if (const Status s = agreement::check_local(job); !s) r.problem = s.message();
  return r;
}

Verdict decide(const std::vector<NodeReport>& reports) {
  Verdict verdict;
  verdict.problem = find_problem(reports);
  if (!verdict.problem.empty()) return verdict;
  if (config().collnet == "off") {
    verdict.problem = "RIFFLE_COLLNET=off: all-reduces stay with NCCL";
    return verdict;
  }
  const Result<Fabric> fabric = fabric_of(reports);
  if (!fabric) {
    verdict.problem = fabric.status().message();
    return verdict;
  }
  PlanOptions options;
  options.max_lanes = static_cast<int>(config().lanes);
  options.only = config().plan;
  const Result<PlanChoice> choice = plan(*fabric, kPlannedBytes, options);
  if (!choice) {
    verdict.problem = choice.status().message();
    return verdict;
  }
  std::string why;
  if (config().collnet == "auto" && !is_worth_it(*fabric, *choice, reports, &why)) {
    verdict.problem = "RIFFLE_COLLNET=auto: " + why;
    return verdict;
  }
  verdict.reason = choice->reason;
  for (const NodeReport& r : reports) verdict.hosts.push_back(r.host);
  verdict.plans = encode(choice->plans);
  verdict.digest = digest(choice->plans);
  return verdict;
}

// Both ways move the same bytes over the network and through the kernel; ours reads every partial
// sum once more to reduce it. Whichever of network and processor is slower sets the time.
bool is_worth_it(const Fabric& fabric, const PlanChoice& choice,
                 const std::vector<NodeReport>& reports, std::string* why) {
  PlanOptions ring;
  ring.only = "ring";
  const Result<PlanChoice> other = plan(fabric, kPlannedBytes, ring);
  if (!other) return true;
  std::int64_t reduce_mbps = reports[0].reduce_mbps, copy_mbps = reports[0].copy_mbps;
  for (const NodeReport& r : reports) {
    reduce_mbps = std::min(reduce_mbps, r.reduce_mbps);
    copy_mbps = std::min(copy_mbps, r.copy_mbps);
  }
  const double n = fabric.size();
  const double moved = 2.0 * kPlannedBytes * (n - 1) / n;             // each way
  const double copy_us = 2 * moved / static_cast<double>(copy_mbps);  // in and out of the kernel
  const double reduce_us = 2.0 * kPlannedBytes / static_cast<double>(reduce_mbps);
  const double ours = std::max(choice.time_us, copy_us + reduce_us);
  const double theirs = std::max(other->time_us, copy_us);
  *why = "32 MiB would take " + std::to_string(static_cast<long>(ours)) + " us here and " +
         std::to_string(static_cast<long>(theirs)) + " us by NCCL's ring";
  return ours <= theirs * kTolerance;
}

}  // namespace riffle
