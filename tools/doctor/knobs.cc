#include "tools/doctor/knobs.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "plugin/collective/connect/connect_options.h"
#include "plugin/config/file_pattern.h"
#include "plugin/entry/sync_settings.h"
#include "plugin/entry/transport_options.h"
#include "plugin/transport/device/device.h"
#include "plugin/transport/device/nic_choice.h"
#include "plugin/transport/nccl_net/library_name.h"
#include "topology/fabric/racks_file.h"
#include "topology/host/cpu_list.h"
#include "topology/plan/planner.h"

namespace riffle::tools {
namespace {

constexpr std::uint64_t kLeastFiles = 1024;

// The last folder on the way to `path` that there is: the others are made.
std::filesystem::path present_folder(std::filesystem::path path) {
  path = std::filesystem::absolute(path);
  std::error_code none;
  do {
    path = path.parent_path();
  } while (!std::filesystem::exists(path, none) && path.has_relative_path());
  return path;
}

// Empty: a file can be written there.
std::string obstacle_to_writing(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return path + " is a folder";
  if (std::filesystem::exists(path, none)) {
    return access(path.c_str(), W_OK) == 0 ? "" : path + ": " + std::strerror(errno);
  }
  const std::filesystem::path folder = present_folder(path);
  if (!std::filesystem::is_directory(folder, none)) return folder.string() + " is no folder";
  if (access(folder.c_str(), W_OK | X_OK) == 0) return "";
  return "folder " + folder.string() + ": " + std::strerror(errno);
}

void check_output(const std::string& knob, const std::string& pattern, const std::string& suffix,
                  const JobVariables& variables, Verdicts* verdicts) {
  if (pattern.empty()) return;
  const auto path = file_of_process(knob, pattern, suffix);
  if (!path) return variables.problem_unless_unset(knob, path.status().message(), verdicts);
  const std::string obstacle = obstacle_to_writing(*path);
  if (obstacle.empty()) return verdicts->good(knob + "=" + pattern + " can be written");
  variables.problem_unless_unset(knob, knob + "=" + pattern + " cannot be written: " + obstacle,
                                 verdicts);
}

void check_saved_fabric(const Config& c, const JobVariables& variables, Verdicts* verdicts) {
  if (c.fabric_save.empty()) return;
  const std::string said = "RIFFLE_FABRIC_SAVE=" + c.fabric_save;
  const std::filesystem::path folder = std::filesystem::absolute(c.fabric_save).parent_path();
  std::error_code none;
  const std::string obstacle = std::filesystem::exists(folder, none)
                                   ? obstacle_to_writing(c.fabric_save)
                                   : "there is no folder " + folder.string();
  if (!obstacle.empty()) {
    variables.problem_unless_unset("RIFFLE_FABRIC_SAVE",
                                   said + " cannot be written, as rank 0's node would: " + obstacle,
                                   verdicts);
  } else if (!c.fabric.empty()) {
    verdicts->note(said + " is not written, as RIFFLE_FABRIC tells the network");
  }
}

void check_topology(const Config& c, const NodeAliases& self, Verdicts* verdicts) {
  if (c.topology.empty() || c.topology == "none") return;
  if (!c.fabric.empty()) {
    return verdicts->note("RIFFLE_TOPOLOGY=" + c.topology + " is not read: RIFFLE_FABRIC is set");
  }
  const auto racks = load_racks(c.topology, std::vector<NodeAliases>{self});
  if (!racks) {
    return verdicts->problem(racks.status().message(),
                             "correct the file, or unset RIFFLE_TOPOLOGY");
  }
  verdicts->good("RIFFLE_TOPOLOGY=" + c.topology + ": " + self.front() + " stands in " +
                 racks->racks.front().name);
}

// Empty: a thread can move there. What counts is the cpuset, not where this process runs now.
std::string obstacle_to_running(const CpuList& cpus) {
  if (cpus.empty()) return "it names no CPU";
  std::string obstacle;
  std::thread([&] {
    cpu_set_t* const set = CPU_ALLOC(kMaxCpus);
    const std::size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
    CPU_ZERO_S(bytes, set);
    for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
    if (sched_setaffinity(0, bytes, set) != 0) obstacle = std::strerror(errno);
    CPU_FREE(set);
  }).join();
  return obstacle;
}

void check_cpus(const Config& c, const JobVariables& variables, Verdicts* verdicts) {
  if (c.cpus.empty() || c.cpus == "none") return;
  const std::string said = "RIFFLE_CPUS=" + c.cpus;
  const auto cpus = parse_cpu_list(c.cpus);
  const std::string obstacle = cpus.is_ok() ? obstacle_to_running(*cpus) : cpus.status().message();
  if (obstacle.empty()) return verdicts->good(said + ": threads can run there");
  variables.problem_unless_unset("RIFFLE_CPUS", said + ": threads cannot run there: " + obstacle,
                                 verdicts);
}

void check_congestion(const Config& c, const JobVariables& variables, Verdicts* verdicts) {
  if (c.congestion == "auto" || c.congestion == "system") return;
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  const bool is_set = setsockopt(socket_fd, IPPROTO_TCP, TCP_CONGESTION, c.congestion.data(),
                                 static_cast<socklen_t>(c.congestion.size())) == 0;
  const std::string why = std::strerror(errno);
  close(socket_fd);
  const std::string said = "RIFFLE_CONGESTION=" + c.congestion;
  if (is_set) return verdicts->good(said + ": the kernel has it");
  variables.problem_unless_unset("RIFFLE_CONGESTION",
                                 said + ": " + why +
                                     "; accepted are auto, system and the names in "
                                     "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
                                 verdicts);
}

void check_plan(const Config& c, const JobVariables& variables, Verdicts* verdicts) {
  if (c.plan.empty()) return;
  PlanOptions options;
  options.only = c.plan;
  options.only_if_it_applies = true;
  const auto choice = plan(even_fabric(4, 1'000'000), kPlannedBytes, options);
  if (!choice) {
    return variables.problem_unless_unset("RIFFLE_PLAN",
                                          "RIFFLE_PLAN: " + choice.status().message(), verdicts);
  }
  verdicts->note("RIFFLE_PLAN=" + c.plan + " keeps the planner from choosing");
}

void check_mode(const Config& c, Verdicts* verdicts) {
  const SyncSettings sync = sync_settings(c);
  for (const std::string& wrong : {sync.refusal, sync.note}) {
    if (!wrong.empty()) verdicts->problem(wrong, "as said there, or leave the mode out");
  }
  if (sync.refusal.empty() && sync.mode != SyncMode::kExact) {
    verdicts->note("sums are not exact: " +
                   (sync.mode == SyncMode::kNarrow   ? "RIFFLE_WIRE=" + c.wire
                    : sync.mode == SyncMode::kSparse ? "RIFFLE_SPARSE=" + c.sparse
                                                     : "RIFFLE_SYNC=" + c.sync));
  }
}

void check_losses(const Config& c, const JobVariables& variables, Verdicts* verdicts) {
  if (c.min_rate == 0 || c.on_loss == "continue") return;
  variables.problem_unless_unset("RIFFLE_MIN_RATE",
                                 "RIFFLE_MIN_RATE=" + std::to_string(c.min_rate) +
                                     " does nothing without RIFFLE_ON_LOSS=continue",
                                 verdicts);
}

void check_trace(const Config& c, const JobVariables& variables, Verdicts* verdicts) {
  if (c.trace == 0 || !c.record.empty()) return;
  variables.problem_unless_unset(
      "RIFFLE_TRACE",
      "RIFFLE_TRACE=" + std::to_string(c.trace) +
          " does nothing without RIFFLE_RECORD, beside which traces are written",
      verdicts);
}

void check_collnet(const Config& c, const JobVariables& variables, Verdicts* verdicts) {
  if (c.collnet != "off" || nccl_net::names_library(c.net)) return;  // off is usual beside one
  variables.problem_unless_unset(
      "RIFFLE_COLLNET",
      "RIFFLE_COLLNET=off: all-reduces take NCCL's ring or tree, and no group plan ever runs",
      verdicts);
}

void check_open_files(Verdicts* verdicts) {
  const std::uint64_t files = most_open_files();
  if (files == 0) return;
  // A job raises its own limit to that (transport/reactor/open_files.h).
  const std::string said = "a job may open " + std::to_string(files) + " files";
  if (files >= kLeastFiles) return verdicts->good(said);
  verdicts->problem(said + ", and every other node takes some for connections",
                    "have the administrator raise the hard limit");
}

}  // namespace

std::uint64_t most_open_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max == RLIM_INFINITY) return 0;
  return files.rlim_max;
}

void check_knobs(const Config& c, const NodeAliases& self, const JobVariables& variables,
                 Verdicts* verdicts) {
  for (const std::string& problem : config_problems()) {
    verdicts->problem(problem, "correct it, or take it out");
  }
  check_collnet(c, variables, verdicts);
  check_plan(c, variables, verdicts);
  check_mode(c, verdicts);
  check_losses(c, variables, verdicts);
  check_topology(c, self, verdicts);
  check_cpus(c, variables, verdicts);
  check_congestion(c, variables, verdicts);
  check_output("RIFFLE_RECORD", c.record, "jsonl", variables, verdicts);
  check_trace(c, variables, verdicts);
  check_output("RIFFLE_LOG_FILE", c.log_file, "log", variables, verdicts);
  check_saved_fabric(c, variables, verdicts);
  check_open_files(verdicts);
}

NicsInUse check_interfaces(const Config& config, const JobVariables& variables,
                           Verdicts* verdicts) {
  const DeviceChoice choice = transport_options(config).devices;
  const Interfaces here = interfaces_of_this_machine();
  const auto nics = choose_nics(here.addresses, here.nics, choice);
  if (!nics) {
    if (choice.rule.empty()) {
      verdicts->problem(nics.status().message(), "bring an interface up, or allow its family");
    } else {
      variables.problem_unless_unset(choice.rule_source, nics.status().message(), verdicts);
    }
    return {};
  }
  NicsInUse in_use;
  std::set<int> mtus;
  std::string names;
  for (const NicAddress& nic : nics->chosen) {
    in_use.addresses.push_back(nic.address);
    const Nic* const known = find_nic(here.nics, nic.interface);
    const int mtu = known == nullptr ? 0 : known->mtu;
    if (mtu > 0) mtus.insert(mtu);
    names += (names.empty() ? "" : ", ") + nic.interface +
             (mtu > 0 ? " (MTU " + std::to_string(mtu) + ")" : "");
  }
  for (const int mtu : mtus) {
    in_use.mtu += (in_use.mtu.empty() ? "" : " and ") + std::to_string(mtu);
  }
  verdicts->good("traffic takes " + names);
  if (!nics->left_out.empty()) verdicts->note("not used: " + to_text(nics->left_out));
  for (const std::string& warning : nics->warnings) verdicts->note(warning);
  return in_use;
}

}  // namespace riffle::tools
