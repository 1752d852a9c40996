// riffle_strangers_bench: what strangers at its doors cost a job that works. Equal nodes of an
// emulated cluster, whose first one strangers from an address outside the job connect to, so many
// times a second; all-reduces with them and without, in turns. The doors of a node that expects no
// peer are closed: what does not fit into the kernel's queue of a listener the kernel drops.
//
//   riffle_strangers_bench --plugin FILE [--rate N] [--nodes N] [--mib N] [--rounds N] [--iters N]
//                          [--json FILE]
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/harness/session.h"
#include "bench/strangers/flood.h"
#include "lab/cluster/profile_file.h"

namespace riffle::bench {
namespace {

constexpr int kBytesOfOne = 74;          // of a connection's first packet
constexpr int kUntilSteadyUs = 300'000;  // until they come at their rate

struct Options {
  std::string plugin, json;
  int rate = 10'000, nodes = 4, mib = 16, rounds = 30, iters = 6;
};

struct Pair {
  Row alone, flooded;
  double knocks_per_s = 0;

  double ratio() const { return flooded.time_us / alone.time_us; }
};

Result<cluster::Profile> network(const Options& o) {
  auto profile = cluster::load_profile("uniform8", RIFFLE_PROFILES);
  if (profile) profile = cluster::resized(*profile, o.nodes);
  if (!profile) return profile;
  // What they send has a part of the link to itself, or the job would push it aside.
  profile->neighbour = {.node = 0, .guaranteed_kbps = 2 * o.rate * kBytesOfOne * 8 / 1000};
  return profile;
}

Status measure_flooded(Session& session, const Question& question, int rate, Pair& pair) {
  const auto ports = listening_ports(session.hub().pid_of(0));
  if (!ports) return ports.status();
  const auto flood = Flood::start(*session.site().cluster, 0, *ports, rate);
  if (!flood) return flood.status();
  usleep(kUntilSteadyUs);
  const std::uint64_t before = (*flood)->knocks();
  const auto start = std::chrono::steady_clock::now();
  const auto row = session.ask(question, [](int) {});
  if (!row) return row.status();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::uint64_t knocks = (*flood)->knocks() - before;
  if (knocks == 0) return system_error("no stranger came: their process has ended");
  pair.knocks_per_s = static_cast<double>(knocks) / took.count();
  pair.flooded = *row;
  return Status::ok();
}

// Which half comes first changes from pair to pair.
Result<Pair> measure_pair(Session& session, const Question& question, int rate, bool alone_first) {
  Pair pair;
  for (const bool alone : {alone_first, !alone_first}) {
    if (!alone) {
      if (Status s = measure_flooded(session, question, rate, pair); !s) return s;
      continue;
    }
    const auto row = session.ask(question, [](int) {});
    if (!row) return row.status();
    pair.alone = *row;
  }
  return pair;
}

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

void print(const std::vector<Pair>& pairs) {
  std::vector<double> ratios, knocks;
  std::size_t wrong = 0;
  for (const Pair& p : pairs) {
    std::printf(
        "alone %8.0f us, with %6.0f strangers a second %8.0f us: %.3f; processors %.0f and %.0f %% "
        "busy\n",
        p.alone.time_us, p.knocks_per_s, p.flooded.time_us, p.ratio(), 100 * p.alone.cpu_load,
        100 * p.flooded.cpu_load);
    ratios.push_back(p.ratio());
    knocks.push_back(p.knocks_per_s);
    wrong += p.alone.wrong + p.flooded.wrong;
  }
  std::printf(
      "time with strangers over time without: median %.4f of %zu pairs; %.0f strangers a second; "
      "%zu wrong\n",
      median(ratios), ratios.size(), median(knocks), wrong);
}

Status write(const std::vector<Pair>& pairs, const std::string& path) {
  if (path.empty()) return Status::ok();
  nlohmann::json rows = nlohmann::json::array();
  for (const Pair& p : pairs) {
    rows.push_back({{"schema", "riffle-strangers-1"},
                    {"knocks_per_s", p.knocks_per_s},
                    {"alone_us", p.alone.samples_us},
                    {"flooded_us", p.flooded.samples_us},
                    {"wrong", p.alone.wrong + p.flooded.wrong}});
  }
  std::ofstream file(path);
  file << rows.dump(1) << "\n";
  return file.flush() ? Status::ok() : system_error("cannot write " + path);
}

Status run(const Options& o) {
  const auto profile = network(o);
  if (!profile) return profile.status();
  const auto session =
      Session::open(*profile, {.plugin = o.plugin, .programs = {}, .congestion = "cubic"});
  if (!session) return session.status();
  if (Status s = (*session)->begin(riffle_peer("riffle")); !s) return s;
  const Question question = {.bytes = static_cast<std::size_t>(o.mib) << 20, .iters = o.iters};
  std::vector<Pair> pairs;
  for (int round = 0; round < o.rounds; ++round) {
    const auto pair = measure_pair(**session, question, o.rate, round % 2 == 0);
    if (!pair) return pair.status();
    pairs.push_back(*pair);
  }
  print(pairs);
  return write(pairs, o.json);
}

}  // namespace
}  // namespace riffle::bench

int main(int argc, char** argv) {
  using namespace riffle::bench;
  CLI::App app("All-reduces beside strangers that connect to a node, and without them");
  Options o;
  app.add_option("--plugin", o.plugin, "The shared object")->required()->check(CLI::ExistingFile);
  app.add_option("--rate", o.rate, "Connections a second")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--nodes", o.nodes, "Of the job, 400 Mbit/s each")
      ->check(CLI::Range(2, 16))
      ->capture_default_str();
  app.add_option("--mib", o.mib, "Of an all-reduce")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--rounds", o.rounds, "Pairs")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--iters", o.iters, "All-reduces of each half of a pair")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", o.json, "File for the rows");
  CLI11_PARSE(app, argc, argv);
  const riffle::Status done = run(o);
  if (!done) std::fprintf(stderr, "riffle_strangers_bench: %s\n", done.message().c_str());
  return done ? 0 : 1;
}
