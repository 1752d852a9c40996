// A trace of real communicators over TCP on loopback, from the knob to the file.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plugin/collective/coll_service.h"
#include "plugin/collective/request.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"
#include "plugin/entry/options.h"
#include "plugin/telemetry/span_log.h"
#include "test/own_job.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle::traced_calls_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kNodes = 3, kCalls = 6;
constexpr std::size_t kElements = 100'000;

// Every node on a thread of its own, which connects, sums and closes.
void run_node(const std::vector<const Handle*>& handles, int rank, coll::Listener* listener) {
  const Result<coll::Communicator*> comm =
      coll::connect(handles, rank, listener, options_from(config()).collective);
  coll::close(listener);
  ASSERT_TRUE(comm) << comm.status().message();
  for (int call = 0; call < kCalls; ++call) {
    std::vector<float> data(kElements, 1);
    const Result<coll::Request*> request = coll::all_reduce(
        *comm, data.data(), data.data(), kElements, DataType::kFloat32, ReduceOp::kSum);
    ASSERT_TRUE(request && *request != nullptr);
    Result<bool> done = false;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (done && !*done && std::chrono::steady_clock::now() < deadline) {
      done = coll::test(*request, nullptr);
    }
    ASSERT_TRUE(done && *done) << rank << " call " << call;
    ASSERT_EQ(data.back(), kNodes);
  }
  coll::close(*comm);
}

void run_job() {
  std::vector<Handle> handles(kNodes);
  std::vector<const Handle*> pointers;
  std::vector<coll::Listener*> listeners;
  for (Handle& handle : handles) {
    listeners.push_back(
        *coll::listen(options_from(config()).transport, 0, testing::own_job(), &handle));
    pointers.push_back(&handle);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kNodes; ++rank) {
    threads.emplace_back([&, rank] { run_node(pointers, rank, listeners[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TracedCalls, EveryOtherCallIsInTheFileBesideTheRecord) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("traced" + std::to_string(getpid()));
  fs::create_directories(folder);
  setenv("RIFFLE_SOCKET_IFNAME", "=lo", 1);
  setenv("RIFFLE_COLLNET", "on", 1);
  setenv("RIFFLE_RECORD", (folder / "%p").c_str(), 1);
  setenv("RIFFLE_TRACE", "2", 1);
  reload_config();
  run_job();
  unsetenv("RIFFLE_RECORD");
  unsetenv("RIFFLE_TRACE");
  reload_config();

  const std::string record = folder / std::to_string(getpid());
  EXPECT_TRUE(fs::exists(record));
  std::ifstream in(record + ".trace");
  std::map<int, std::set<std::uint64_t>> calls;  // by rank
  std::map<std::string, int> frames;             // by name, ends that were traced
  std::map<int, std::string> plans;
  int connected = 0;
  for (std::string text; std::getline(in, text);) {
    const json line = json::parse(text);
    if (line["type"] == "trace") ++connected;
    if (line["type"] == "event") plans[line["rank"]] = line["kind"];
    if (line["type"] != "spans") continue;
    EXPECT_EQ(line["dropped"], 0);
    const int rank = line["rank"];
    for (const json& span : line["spans"]) {
      const auto kind = span[0].get<SpanKind>();
      if (kind == SpanKind::kCall) calls[rank].insert(span[2].get<std::uint64_t>());
      const bool is_out = kind == SpanKind::kPartialOut || kind == SpanKind::kFinalOut;
      const bool is_in = kind == SpanKind::kPartialIn || kind == SpanKind::kFinalIn;
      if (!is_out && !is_in) continue;
      const bool is_final = kind == SpanKind::kFinalOut || kind == SpanKind::kFinalIn;
      const json name{is_out ? json(rank) : span[6],
                      is_out ? span[6] : json(rank),
                      is_final,
                      span[2],
                      span[3],
                      span[4],
                      span[7]};
      ++frames[name.dump()];
    }
  }
  fs::remove_all(folder);
  EXPECT_EQ(connected, kNodes);
  ASSERT_EQ(calls.size(), static_cast<std::size_t>(kNodes));
  for (const auto& [rank, of_rank] : calls) EXPECT_EQ(of_rank, (std::set<std::uint64_t>{0, 2, 4}));
  EXPECT_EQ(plans, (std::map<int, std::string>{{0, "plan"}, {1, "plan"}, {2, "plan"}}));
  EXPECT_GE(frames.size(), 3u * 2 * kNodes);  // of each call, at least one each way per node
  for (const auto& [name, ends] : frames) EXPECT_EQ(ends, 2) << name;
}

std::mutex warnings_mutex;
std::vector<std::string> warnings;
void keep_warning(int level, unsigned long, const char*, int, const char* format, ...) {
  constexpr int kWarn = 2;
  if (level != kWarn) return;
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(warnings_mutex);
  warnings.emplace_back(text);
}

// Both files are on a full disk, and communicators come and go. In a process of its own, which
// records nothing from then on.
TEST(TracedCalls, AFullDiskCostsTheRecordAndNothingElse) {
  ASSERT_TRUE(eventually(
      [] { return reactor_threads() == 0 && threads_called("riffle-machine") == 0; }, 7000));
  const fs::path folder = fs::path(::testing::TempDir()) / ("full" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (const char* file : {"0", "0.trace"}) fs::create_symlink("/dev/full", folder / file);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    setenv("RIFFLE_SOCKET_IFNAME", "=lo", 1);
    setenv("RIFFLE_COLLNET", "on", 1);
    setenv("RANK", "0", 1);
    setenv("RIFFLE_RECORD", (folder / "%r").c_str(), 1);
    setenv("RIFFLE_TRACE", "1", 1);
    reload_config();
    set_logger(keep_warning);
    for (int job = 0; job < 3; ++job) run_job();
    std::string all;
    for (const std::string& warning : warnings) all += warning + "\n";
    for (const std::string& file : {(folder / "0").string(), (folder / "0.trace").string()}) {
      const auto at = all.find(file + ": No space left on device; recording ends");
      EXPECT_NE(at, std::string::npos) << file << ": " << all;
    }
    EXPECT_EQ(warnings.size(), 2u) << all;
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace riffle::traced_calls_test
