// riffle_soak: jobs on emulated clusters, one after the other for as long as it is told, each drawn
// from a number: network, settings, one to four communicators, and nodes that are stopped, cut off,
// slowed down or killed. Real processes drive the plugin's COLLNET table.
//
// A finding is: a sum that is wrong or differs between nodes, or does not end; an error without a
// cause; a loss that is noticed later than the peer timeout allows, or not at all; a node that ends
// by itself, or does not end, or leaves descriptors or threads when it has closed its
// communicators. One line per job, with its seed, and one per finding, beside which the JSON row
// keeps what the nodes logged: not every job does the same again. Exit code 1 if there was any.
//
//   riffle_soak --plugin FILE [--minutes N] [--seed N] [--jobs N] [--log FILE] [--json FILE]
//               [--sum-limit SECONDS]
#include <sys/mman.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bench/harness/temporary_folder.h"
#include "bench/soak/board.h"
#include "bench/soak/faults.h"
#include "bench/soak/findings.h"
#include "bench/soak/job.h"
#include "bench/soak/worker.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/profile_file.h"
#include "lab/nccl_host/launcher.h"

namespace riffle::bench::soak {
namespace {

constexpr int kDeadlineMs = 300'000;      // of a job: far more than its longest takes
constexpr std::size_t kKeptLines = 2000;  // of a node's log, the last ones

struct Options {
  std::string plugin, log, json;
  double minutes = 10;
  int sum_limit_s = 120;
  int jobs = 1'000'000;
  std::uint64_t seed = 1;
};

struct BoardMemory {
  BoardMemory() {
    void* const at =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    board = new (at) Board();
  }
  ~BoardMemory() { munmap(board, sizeof(Board)); }
  BoardMemory(const BoardMemory&) = delete;
  Board* board;
};

void set_environment(const Job& job, const std::string& log) {
  setenv("RIFFLE_SOCKET_IFNAME", "eth0", 1);
  setenv("RIFFLE_COLLNET", "on", 1);
  setenv("RIFFLE_RESCALE", "0", 1);  // a sum shall tell who is in it
  setenv("RIFFLE_LOG", "info", 1);
  setenv("RIFFLE_LOG_FILE", log.c_str(), 1);
  for (const auto& [name, value] : job.settings) setenv(name.c_str(), value.c_str(), 1);
}

struct Outcome {
  std::uint64_t sums = 0;
  std::vector<std::string> findings;
  nlohmann::json logs = nlohmann::json::object();  // lines by file
};

nlohmann::json logs_in(const std::string& folder) {
  nlohmann::json logs = nlohmann::json::object();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::deque<std::string> lines;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      lines.push_back(std::move(line));
      if (lines.size() > kKeptLines) lines.pop_front();
    }
    logs[entry.path().filename().string()] = lines;
  }
  return logs;
}

Result<Outcome> run_job(const Job& job, const Options& options) {
  auto profile = cluster::load_profile(job.network, RIFFLE_PROFILES);
  if (!profile) return profile.status();
  auto made = cluster::Cluster::create(*profile);
  if (!made) return made.status();
  const cluster::Cluster& cluster = **made;
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.status();
  const std::string log = options.log.empty() ? folder->path() + "/%h-%p.log" : options.log;
  const BoardMemory memory;
  Board& board = *memory.board;
  pid_t injector = -1;
  host::LaunchOptions launch;
  launch.ranks = cluster.size();
  launch.deadline_ms = kDeadlineMs;
  launch.before = [&](int rank) {
    set_environment(job, log);
    return cluster.enter(rank);
  };
  launch.on_started = [&](const std::vector<pid_t>& pids) {
    injector = fork();
    if (injector == 0) inject(job, cluster, pids, board);
  };
  const auto exits = host::launch(launch, [&](host::Bootstrap& bootstrap) {
    const Status done =
        work(bootstrap, job, {options.plugin, std::chrono::seconds(options.sum_limit_s)}, board);
    if (!done) {
      find(board, bootstrap.rank(), done.message());
      board.is_over = true;
    }
    return done;
  });
  if (injector > 0) waitpid(injector, nullptr, 0);
  Outcome outcome;
  outcome.sums = board.sums;
  outcome.findings = findings_of(job, board, cluster.size(), exits);
  if (!outcome.findings.empty()) outcome.logs = logs_in(folder->path());
  return outcome;
}

struct Total {
  int jobs = 0;
  std::uint64_t sums = 0;
  nlohmann::json rows = nlohmann::json::array();
  int findings = 0;
};

Status run(const Options& options, Total& total) {
  const std::int64_t end_ms = now_ms() + static_cast<std::int64_t>(options.minutes * 60'000);
  for (std::uint64_t seed = options.seed; total.jobs < options.jobs && now_ms() < end_ms; ++seed) {
    const Job job = draw_job(seed);
    const auto outcome = run_job(job, options);
    if (!outcome) return outcome.status();
    ++total.jobs;
    total.sums += outcome->sums;
    total.findings += static_cast<int>(outcome->findings.size());
    const std::string text = describe(job);
    std::printf("job of seed %llu: %s: %llu sums%s\n", static_cast<unsigned long long>(seed),
                text.c_str(), static_cast<unsigned long long>(outcome->sums),
                outcome->findings.empty() ? "" : "; FINDINGS");
    for (const std::string& finding : outcome->findings) std::printf("  %s\n", finding.c_str());
    std::fflush(stdout);
    total.rows.push_back({{"schema", "riffle-soak-1"},
                          {"seed", seed},
                          {"job", text},
                          {"sums", outcome->sums},
                          {"findings", outcome->findings},
                          {"logs", outcome->logs}});
  }
  return Status::ok();
}

Status write(const nlohmann::json& rows, const std::string& path) {
  if (path.empty()) return Status::ok();
  std::ofstream file(path);
  file << rows.dump(1) << "\n";
  return file.flush() ? Status::ok() : system_error("cannot write " + path);
}

}  // namespace
}  // namespace riffle::bench::soak

int main(int argc, char** argv) {
  using namespace riffle::bench::soak;
  CLI::App app("Jobs on emulated clusters whose nodes are stopped, cut off, slowed down, killed");
  Options o;
  app.add_option("--plugin", o.plugin, "The shared object")->required()->check(CLI::ExistingFile);
  app.add_option("--minutes", o.minutes, "No further job begins after so long")
      ->check(CLI::Range(0.1, 10'000.0));
  app.add_option("--jobs", o.jobs, "... or after so many")->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", o.seed, "Number of the first job; --jobs 1 repeats one");
  app.add_option("--sum-limit", o.sum_limit_s, "Seconds; a sum that takes longer hangs")
      ->check(CLI::Range(1, 240));
  app.add_option("--log", o.log, "As RIFFLE_LOG_FILE, for the nodes of all jobs");
  app.add_option("--json", o.json, "File for the rows");
  CLI11_PARSE(app, argc, argv);
  Total total;
  riffle::Status done = run(o, total);
  std::printf("%d jobs, %llu sums, %d findings\n", total.jobs,
              static_cast<unsigned long long>(total.sums), total.findings);
  if (done) done = write(total.rows, o.json);
  if (!done) std::fprintf(stderr, "riffle_soak: %s\n", done.message().c_str());
  return done && total.findings == 0 ? 0 : 1;
}
