// riffle_footprint: what communicators cost a process that has them: connections, memory, threads,
// processor time while nothing runs; and what is left of them once they are destroyed.
//
// All processes are on this machine and meet over loopback, on the plugin's own COLLNET table, two
// all-reduces of 1 MiB per communicator. Every figure is what a process has beyond what it had with
// the plugin loaded: the most of any process, and the median. With --racks, nodes of 10 Gbit/s in
// so many racks behind uplinks of a quarter of what their nodes have, told by a file; without, one
// machine, whose links count as equal.
//
//   riffle_footprint --plugin FILE --nodes 8,16 --comms 1,8 [--racks N] [--rounds N] [--json FILE]
#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "bench/footprint/rounds.h"
#include "bench/harness/temporary_folder.h"
#include "lab/nccl_host/launcher.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::bench {
namespace {

constexpr int kStepMs = 600'000;  // for all processes to come to the same point
constexpr int kDayMs = 24 * 3600'000;
constexpr std::int64_t kNodeKbps = 10'000'000;
constexpr std::int64_t kOversubscription = 4;

struct Options {
  Order order;
  std::vector<int> nodes = {8}, communicators = {1};
  int racks = 0;
  std::string json;
};

std::string node_name(int rank) { return "node" + std::to_string(rank); }

Fabric fabric_of(int nodes, int racks) {
  Fabric fabric = even_fabric(nodes, kNodeKbps);
  const std::int64_t uplink_kbps = nodes / racks * kNodeKbps / kOversubscription;
  fabric.racks.clear();
  for (int r = 0; r < racks; ++r) {
    fabric.racks.push_back({"rack" + std::to_string(r), uplink_kbps, uplink_kbps});
  }
  for (int n = 0; n < nodes; ++n) {
    NodeLink& node = fabric.nodes[static_cast<std::size_t>(n)];
    node.name = node_name(n);
    node.rack = n * racks / nodes;
  }
  return fabric;
}

// Settings of the caller's win.
void set_environment(int rank, const std::string& fabric) {
  setenv("RIFFLE_SOCKET_IFNAME", "=lo", 0);
  setenv("RIFFLE_COLLNET", "on", 0);  // auto would rightly fall back to NCCL on one machine
  setenv("RIFFLE_CONNECT_TIMEOUT", std::to_string(kStepMs / 1000).c_str(), 0);
  setenv("RIFFLE_NODE_NAME", node_name(rank).c_str(), 0);
  if (!fabric.empty()) setenv("RIFFLE_FABRIC", fabric.c_str(), 0);
}

// Of one stage of one round, by process.
using Uses = std::vector<ProcessUse>;
using Stages = std::map<std::pair<int, Stage>, Uses>;

Result<Stages> measure(const Options& options, int nodes, int communicators,
                       const std::string& fabric) {
  Order order = options.order;
  order.communicators = communicators;
  Stages stages;
  host::LaunchOptions launch;
  launch.ranks = nodes;
  launch.deadline_ms = kDayMs;
  launch.bootstrap_deadline_ms = kStepMs;
  launch.before = [&](int rank) {
    set_environment(rank, fabric);
    return Status::ok();
  };
  launch.on_note = [&](int /*rank*/, const std::string& note) {
    const Reading reading = reading_of(note);
    stages[{reading.round, reading.stage}].push_back(reading.use);
  };
  const Status ended = host::all_succeeded(host::launch(
      launch, [&](host::Bootstrap& bootstrap) { return run_rounds(bootstrap, order); }));
  if (!ended) return ended;
  return stages;
}

std::vector<std::int64_t> sorted(const Uses& uses, const UseField& field) {
  std::vector<std::int64_t> values;
  for (const ProcessUse& use : uses) values.push_back(use.*field.value);
  std::ranges::sort(values);
  return values;
}

void add_row(nlohmann::json& rows, const Options& options, int nodes, int communicators,
             const Stages::value_type& stage) {
  const auto& [round, at] = stage.first;
  const char* const name = kStageNames[static_cast<std::size_t>(at)];
  nlohmann::json row = {
      {"schema", "riffle-footprint-1"}, {"nodes", nodes}, {"racks", options.racks},
      {"communicators", communicators}, {"round", round}, {"stage", name}};
  std::printf("%5d %5d %5d %-10s", nodes, communicators, round, name);
  for (const UseField& field : kUseFields) {
    if (field.value == &ProcessUse::idle_us_per_s &&
        (at != Stage::kUsed || options.order.idle_s == 0)) {
      continue;
    }
    const auto values = sorted(stage.second, field);
    row[field.name] = values.back();
    row[std::string(field.name) + "_median"] = values[values.size() / 2];
    std::printf(" %13lld", static_cast<long long>(values.back()));
  }
  std::printf("\n");
  std::fflush(stdout);
  rows.push_back(std::move(row));
}

void print_head() {
  std::printf("# the most of any process\n%5s %5s %5s %-10s", "nodes", "comms", "round", "stage");
  for (const UseField& field : kUseFields) std::printf(" %13s", field.name);
  std::printf("\n");
}

Result<std::string> written_fabric(const std::string& folder, int nodes, int racks) {
  if (racks == 0) return std::string();
  if (nodes % racks != 0) {
    return invalid_argument("--racks " + std::to_string(racks) + ": " + std::to_string(nodes) +
                            " nodes do not fill so many racks of equal size");
  }
  const std::string path = folder + "/fabric.toml";
  std::ofstream file(path);
  file << to_toml(fabric_of(nodes, racks));
  if (!file.flush()) return system_error("cannot write " + path);
  return path;
}

Status run(const Options& options) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.status();
  nlohmann::json rows = nlohmann::json::array();
  print_head();
  for (const int nodes : options.nodes) {
    const auto fabric = written_fabric(folder->path(), nodes, options.racks);
    if (!fabric) return fabric.status();
    for (const int communicators : options.communicators) {
      const auto stages = measure(options, nodes, communicators, *fabric);
      if (!stages) return stages.status();
      for (const auto& stage : *stages) add_row(rows, options, nodes, communicators, stage);
    }
  }
  if (options.json.empty()) return Status::ok();
  std::ofstream file(options.json);
  file << rows.dump(1) << "\n";
  return file.flush() ? Status::ok() : system_error("cannot write " + options.json);
}

}  // namespace
}  // namespace riffle::bench

int main(int argc, char** argv) {
  CLI::App app("What communicators cost a process: connections, memory, threads, idle time");
  riffle::bench::Options o;
  app.add_option("--plugin", o.order.plugin, "The shared object")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--nodes", o.nodes, "Processes, a list")
      ->delimiter(',')
      ->check(CLI::Range(2, 1024));
  app.add_option("--comms", o.communicators, "Communicators of all of them, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--racks", o.racks, "Racks that the nodes stand in; 0: all links count as equal")
      ->check(CLI::Range(0, 1024));
  app.add_option("--rounds", o.order.rounds, "How often they are made and destroyed")
      ->check(CLI::Range(1, 10000));
  app.add_option("--idle-s", o.order.idle_s, "Seconds of idling; 0: not measured")
      ->check(CLI::Range(0, 3600));
  app.add_option("--json", o.json, "File for the rows");
  CLI11_PARSE(app, argc, argv);
  const riffle::Status done = riffle::bench::run(o);
  if (!done) std::fprintf(stderr, "riffle_footprint: %s\n", done.message().c_str());
  return done ? 0 : 1;
}
