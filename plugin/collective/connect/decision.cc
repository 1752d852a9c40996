#include "plugin/collective/connect/decision.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>

#include "plugin/collective/base/agreement.h"
#include "plugin/collective/connect/live_network.h"
#include "plugin/config/log.h"
#include "plugin/identity/identity.h"
#include "plugin/transport/device/device.h"
#include "plugin/version.h"
#include "topology/base/printed.h"
#include "topology/fabric/fabric_file.h"
#include "topology/plan/nccl_model.h"
#include "topology/plan/rank_order.h"
#include "topology/plan/schedules/schedules.h"

namespace riffle {
namespace {

constexpr double kTolerance = 1.03;        // never slower than NCCL's ring or tree by more
constexpr double kBadOrder = 1.25;         // of NCCL's own rings, that is worth a word
constexpr std::int64_t kCrowded = 4;       // threads per processor from which these are the limit,
constexpr std::size_t kFewestToShare = 4;  // and nodes with which two trees are then faster

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

std::string who(const NodeReport& r) { return "rank " + std::to_string(r.rank) + " on " + r.host; }

Result<Fabric> fabric_of(const std::string& path, const std::vector<NodeReport>& reports,
                         const Fabric* probed, const Racks* racks) {
  if (path.empty() && probed != nullptr) return *probed;
  if (path.empty()) {
    std::int64_t rate = reports[0].rate_kbps;
    for (const NodeReport& r : reports) rate = std::min(rate, r.rate_kbps);
    Fabric fabric = even_fabric(static_cast<int>(reports.size()), rate);
    for (std::size_t i = 0; i < reports.size(); ++i) fabric.nodes[i].name = reports[i].host;
    if (racks != nullptr) put_into_racks(*racks, fabric);
    return fabric;
  }
  std::vector<NodeAliases> names;
  for (const NodeReport& r : reports) names.push_back(r.aliases);
  const Result<LoadedFabric> file = load_fabric(path, names);
  if (!file) return file.status();
  for (const std::string& note : file->notes) log_warn(note);
  return file->fabric;
}

// Once per process: later communicators have parts of the same nodes.
void advise_order(const Fabric& fabric) {
  static std::atomic<bool> was_said{false};
  if (const std::string advice = order_advice(fabric);
      !advice.empty() && !was_said.exchange(true)) {
    log_info(advice);
  }
}

}  // namespace

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

// Whether all nodes hear from NCCL what their calls are; said where only some do.
bool know_lengths(const std::vector<NodeReport>& reports) {
  const auto knows = [](const NodeReport& r) { return r.knows_lengths; };
  const auto in_the_dark = std::find_if_not(reports.begin(), reports.end(), knows);
  if (in_the_dark == reports.end()) return true;
  if (std::any_of(reports.begin(), reports.end(), knows)) {
    log_info(
        "calls are moved as NCCL posts them, padding and all: {} has no profiler events "
        "(NCCL_PROFILER_PLUGIN, from NCCL 2.27 on)",
        who(*in_the_dark));
  }
  return false;
}

// Machines of equal host names differ by the boot id; containers of one machine share it.
bool are_one_machine(const std::vector<NodeReport>& reports) {
  const auto is_same = [&](const NodeReport& r) {
    const std::string& known = reports.front().share.machine;
    const bool is_told = !known.empty() && !r.share.machine.empty();
    return r.host == reports.front().host && (!is_told || r.share.machine == known);
  };
  return std::ranges::all_of(reports, is_same);
}

NodeReport own_report(const ConnectOptions& options, int rank, const Device& d,
                      const std::string& job) {
  NodeReport r;
  r.rank = rank;
  r.host = host_name();
  if (!options.node_name.empty()) r.aliases.push_back(options.node_name);
  r.aliases.push_back(r.host);
  for (const NicAddress& a : d.addresses) r.aliases.push_back(a.address);
  r.version = kVersion;
  r.knobs = options.knobs;
  r.rack = options.rack;
  r.network = network_of(d.addresses.front());
  r.rate_kbps = static_cast<std::int64_t>(d.speed_mbps) * 1000;
  r.knows_rate = d.knows_speed;
  r.speed = machine_speed();
  r.share = share_of_machine();
  r.knows_lengths = options.moves_valid_elements && identity::is_told();
  if (const Status s = agreement::check_local(job, options.knobs); !s) r.problem = s.message();
  return r;
}

RelaxedPlans relaxed_plans(const Fabric& fabric, const SyncSettings& sync, bool is_told) {
  const SyncMode mode = sync.mode;
  if (is_same_on_all_nodes(mode)) return {};
  ScheduleOptions options;
  options.bytes = kPlannedBytes;
  const ScheduleMode pattern = mode == SyncMode::kMoshpit      ? ScheduleMode::kMoshpit
                               : mode == SyncMode::kShadowSync ? ScheduleMode::kShadowSync
                                                               : ScheduleMode::kDsSync;
  if (mode == SyncMode::kShadowSync) {
    options.round_steps = static_cast<int>(sync.shadow_steps);
    put_into(sync.shadow, &options);
  }
  Result<ScheduleChoice> choice = choose_schedule(fabric, pattern, options);
  if (!choice) {
    if (is_told) log_warn("{} does not begin: {}", name_of(mode), choice.status().message());
    return {};
  }
  ScheduleTable& t = choice->table;
  std::string line = name_of(mode);
  if (mode == SyncMode::kShadowSync) {
    line += " by the rule " + describe(sync.shadow, fabric.size());
  }
  if (is_told) {
    log_info("{}: {}", line,
             options.all_nodes ? "rounds over all nodes, by the exact plan" : choice->reason);
  }
  if (options.all_nodes) t.chunk_bytes = 0;
  return {static_cast<std::uint32_t>(t.steps), static_cast<std::uint32_t>(t.lanes),
          std::move(t.partitions), std::move(t.table), t.chunk_bytes};
}

double relaxed_step_us(const Fabric& fabric, const RelaxedPlans& plans) {
  ScheduleTable table;
  table.nodes = fabric.size();
  table.steps = static_cast<int>(plans.steps);
  table.lanes = static_cast<int>(plans.lanes);
  table.partitions = plans.partitions;
  table.table = plans.table;
  ScheduleOptions options;
  options.bytes = kPlannedBytes;
  return predicted_us(fabric, table, options);
}

Verdict decide(const ConnectOptions& options, const std::vector<NodeReport>& reports,
               const Fabric* probed, const Racks* racks, PlanBasis* basis) {
  Verdict verdict;
  verdict.problem = find_problem(reports);
  if (!verdict.problem.empty()) return verdict;
  if (options.collnet == Wish::kOff) {
    verdict.fallback_reason = "RIFFLE_COLLNET=off";
    if (options.survives_losses)
      verdict.fallback_reason += " (RIFFLE_ON_LOSS=continue can do nothing for them)";
    return verdict;
  }
  const Result<Fabric> fabric = fabric_of(options.fabric, reports, probed, racks);
  if (!fabric) {
    verdict.problem = fabric.status().message();
    return verdict;
  }
  advise_order(*fabric);
  std::vector<MachineShare> shares;
  std::vector<MachineSpeed> speeds;
  for (const NodeReport& r : reports) {
    shares.push_back(r.share);
    speeds.push_back(r.speed);
  }
  PlanOptions planning = options.plan;
  // What is measured may differ from run to run, and the plan with it.
  const std::int64_t price_ns = options.is_deterministic ? kMessageNs : message_price_ns(speeds);
  // Nodes that share processors wait for each other, too; beyond this it is a guess.
  const std::int64_t crowded = crowding(shares);
  const std::int64_t shared_ns = std::min(price_ns * crowded, kSmallMessageNs);
  planning.message_ns = std::max(price_ns, shared_ns) / std::max(1, options.threads);
  planning.small_message_ns = kSmallMessageNs * crowded;
  const bool is_nominal = options.fabric.empty() && probed == nullptr;
  planning.has_nominal_rates = is_nominal;
  // Not in auto, which weighs the plan against NCCL's ring and tree by what the network takes.
  planning.share_processors = is_nominal && options.collnet == Wish::kOn && crowded >= kCrowded &&
                              reports.size() >= kFewestToShare && are_one_machine(reports);
  if (basis != nullptr) {
    *basis = {*fabric, is_nominal, planning.message_ns, planning.small_message_ns,
              planning.share_processors};
  }
  Result<PlanChoice> choice = plan(*fabric, kPlannedBytes, planning);
  if (!choice) {
    verdict.problem = choice.status().message();
    return verdict;
  }
  std::string why;
  const bool knows_rates =
      !options.fabric.empty() || probed != nullptr ||
      std::all_of(reports.begin(), reports.end(), [](auto& r) { return r.knows_rate; });
  // NCCL may be faster, but no loss is survived there. And sparse or narrower sums are asked for
  // because exact ones take too long, NCCL's among them.
  const SyncSettings& sync = options.sync;
  const bool saves_bytes =
      (sync.mode == SyncMode::kSparse && !sync.sparse.is_auto) || sync.mode == SyncMode::kNarrow;
  const bool may_fall_back =
      options.collnet == Wish::kAuto && !options.survives_losses && !saves_bytes;
  if (may_fall_back && !is_worth_it(*fabric, *choice, reports, knows_rates, &why)) {
    verdict.fallback_reason = "RIFFLE_COLLNET=auto: " + why;
    return verdict;
  }
  verdict.reason = choice->reason;
  if (basis != nullptr && !is_nominal) {
    basis->predicted_us = choice->time_us;
    basis->planned_bytes = kPlannedBytes;
  }
  if (sync.all_levels && !choice->plans.name.starts_with("grid")) {
    log_warn(
        "RIFFLE_MOSHPIT_LEVELS=all: {} nodes fill no grid; sums are exact by the best "
        "other plan",
        fabric->size());
  }
  for (const NodeReport& r : reports) verdict.hosts.push_back(r.host);
  choice->plans.relaxed = relaxed_plans(*fabric, sync, true);
  verdict.plans = encode(choice->plans);
  verdict.digest = digest(choice->plans);
  verdict.knows_lengths = know_lengths(reports);
  if (probed != nullptr) verdict.network = network_text(*probed);
  return verdict;
}

std::string order_advice(const Fabric& fabric) {
  const FabricView view(fabric);
  std::vector<int> by_rank(fabric.nodes.size());
  std::iota(by_rank.begin(), by_rank.end(), 0);
  const RingsTime ring = rings_time(view, by_rank, fabric.size(), kPlannedBytes);
  const double least_us = rings_bound_us(view, fabric.size(), kPlannedBytes);
  if (ring.slowest.time_us <= kBadOrder * least_us) return "";
  return printed(
      "the order of ranks crosses racks %d times where %zu would do: NCCL's own rings "
      "(reduce-scatter, all-gather) take %.1f times as long as in the best order, which `riffle "
      "order` prints",
      ring.crossings, view.racks().size(), ring.slowest.time_us / least_us);
}

// Every way moves the bytes over the network and through the kernel. We also add them up, which for
// NCCL the GPUs do. Whichever of network and processor is slower sets the time: while the network
// is slower, the reduction hides behind it.
bool is_worth_it(const Fabric& fabric, const PlanChoice& choice,
                 const std::vector<NodeReport>& reports, bool knows_rates, std::string* why) {
  MachineSpeed slowest = reports[0].speed;
  for (const NodeReport& r : reports) {
    slowest.reduce_mbps = std::min(slowest.reduce_mbps, r.speed.reduce_mbps);
    slowest.stack_mbps = std::min(slowest.stack_mbps, r.speed.stack_mbps);
  }
  // Nothing known of the processors: they count as fast enough, as does a network without rates.
  if (fabric.size() < 2 || slowest.reduce_mbps <= 0 || slowest.stack_mbps <= 0) return true;
  const auto [stack_us, reduce_us] = processor_time(choice.plans, kPlannedBytes, slowest);
  const double ours = std::max(knows_rates ? choice.time_us : 0, stack_us + reduce_us);
  const auto by_nccl = [&](const NcclAlgorithm& a) {
    const double nccl_stack_us = a.moved * kPlannedBytes / static_cast<double>(slowest.stack_mbps);
    return std::max(knows_rates ? a.network_us : 0, nccl_stack_us);
  };
  const auto algorithms = nccl_algorithms(fabric, kPlannedBytes);
  const NcclAlgorithm& best = *std::ranges::min_element(algorithms, {}, by_nccl);
  const double theirs = by_nccl(best);
  const auto text = [](double us) { return std::to_string(static_cast<long>(us)) + " us"; };
  *why = "32 MiB would take " + text(ours) + " here and " + text(theirs) + " by NCCL's " +
         best.name + " (" + text(stack_us) + " here for TCP, " + text(reduce_us) + " to reduce" +
         (knows_rates ? "" : "; the network's rates are not known") + ")";
  return ours <= theirs * kTolerance;
}

}  // namespace riffle
