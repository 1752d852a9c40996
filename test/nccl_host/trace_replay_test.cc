// Every recorded run of real NCCL is played into the plugin (replay.h).
#include "test/nccl_host/plugin_under_test.h"
#include "test/nccl_host/replay.h"

namespace riffle::host::trace_replay_test {
namespace {

struct Recording {
  std::string release;
  std::string scenario;
  friend void PrintTo(const Recording& r, std::ostream* out) {
    *out << r.release << " " << r.scenario;
  }
};

std::vector<Recording> all_runs() {
  std::vector<Recording> runs;
  for (const char* release : {"2.28.9", "2.30.7"}) {
    for (const std::string& s : scenarios(std::string(RIFFLE_TRACES) + "/nccl-" + release)) {
      runs.push_back({release, s});
    }
  }
  return runs;
}

class TraceReplay : public ::testing::TestWithParam<Recording> {};

TEST_P(TraceReplay, IsServedRightly) {
  RIFFLE_NEEDS_PLUGIN();
  const Recording& run = GetParam();
  const std::string folder = std::string(RIFFLE_TRACES) + "/nccl-" + run.release;
  std::vector<Trace> traces;
  for (int rank : {0, 1}) {
    Result<Trace> t = read_trace(folder, run.scenario, rank);
    ASSERT_TRUE(t.is_ok()) << t.status().message();
    traces.push_back(std::move(*t));
  }
  // The second rank of a node is not a head: no COLLNET call to play, but NET ones.
  const int per_node = traces[0].header["ranksPerNode"];
  const int nodes = traces[0].header["nranks"].get<int>() / per_node;
  LaunchOptions options;
  options.ranks = nodes;
  options.deadline_ms = 60000;
  const Status status = all_succeeded(launch(options, [&](Bootstrap& bootstrap) -> Status {
    set_plugin_environment();
    auto library = PluginLibrary::load(plugin_path(), {});
    if (!library) return library.status();
    const std::size_t which = per_node == 1 ? static_cast<std::size_t>(bootstrap.rank() % 2) : 0;
    return replay(**library, traces[which], bootstrap);
  }));
  EXPECT_TRUE(status.is_ok()) << status.message();
}

INSTANTIATE_TEST_SUITE_P(All, TraceReplay, ::testing::ValuesIn(all_runs()), [](const auto& info) {
  std::string name = info.param.release + "_" + info.param.scenario;
  for (char& c : name) {
    if (c == '.' || c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace riffle::host::trace_replay_test
