// The shipped plugin told by NCCL's profiler events (profiler_feed.h) which collectives its calls
// belong to: with RIFFLE_IDENTITY=on it logs, when a communicator ends, of how many calls it was
// sure. What it is sure of is identity_traces_test's and identity_test's to judge.
#include <cstdio>
#include <fstream>
#include <regex>

#include "lab/nccl_host/work/pattern.h"
#include "test/nccl_host/plugin_under_test.h"

namespace riffle::host::identity_plugin_test {
namespace {

constexpr auto kF32 = DataType::kFloat32;

// Unset again at the end, so that other tests of this executable are not touched.
class Environment {
 public:
  explicit Environment(const char* identity) {
    setenv("RIFFLE_IDENTITY", identity, 1);
    setenv("NCCL_DEBUG", "INFO", 1);
  }
  ~Environment() {
    unsetenv("RIFFLE_IDENTITY");
    unsetenv("NCCL_DEBUG");
  }
};

// What this process logs from here on.
class Log {
 public:
  explicit Log(int rank)
      : path_(::testing::TempDir() + "riffle-identity-" + std::to_string(getpid()) + "-" +
              std::to_string(rank)) {
    if (std::freopen(path_.c_str(), "w", stderr) == nullptr) path_.clear();
  }
  ~Log() { std::remove(path_.c_str()); }
  std::string text() const {
    std::fflush(stderr);
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

struct Said {
  std::uint64_t sure = 0, unsure = 0;
  bool was_said = false;
};

Said last_said(const std::string& log) {
  static const std::regex line("identity of all-reduce calls: sure of ([0-9]+), not of ([0-9]+)");
  Said said;
  for (std::sregex_iterator i(log.begin(), log.end(), line), end; i != end; ++i) {
    said = {std::stoull((*i)[1]), std::stoull((*i)[2]), true};
  }
  return said;
}

// Buckets in flight, a group, other collectives in between.
Status work(Communicator& comm, Bootstrap& b) {
  std::vector<std::size_t> counts = {1, 8192, 81921, 262144, 1310720, 555555};
  for (unsigned step = 0; step < 3; ++step) {
    std::vector<std::vector<float>> data;
    for (std::size_t count : counts) {
      data.emplace_back(count);
      fill_pattern(data.back().data(), count, kF32, b.rank(), step);
    }
    if (step == 1) comm.group_start();
    for (auto& d : data) {
      if (Status s = comm.all_reduce(d.data(), d.data(), d.size(), kF32, Op::kSum); !s) return s;
    }
    std::vector<float> wide(1000 * static_cast<std::size_t>(b.size()));
    if (Status s = comm.all_gather(data[0].data(), wide.data(), 1, kF32); !s) return s;
    if (step == 1) {
      if (Status s = comm.group_end(); !s) return s;
    }
    if (Status s = comm.wait(); !s) return s;
    for (auto& d : data) {
      if (count_wrong(d.data(), d.size(), kF32, Op::kSum, b.size(), step) != 0) {
        return internal_error("wrong sums");
      }
    }
  }
  return Status::ok();
}

Status on_ranks(
    const TableVersions& versions, int channels,
    const std::function<Status(PluginLibrary&, Bootstrap&, const Options&, const Log&)>& body) {
  LaunchOptions launch_options;
  launch_options.ranks = 3;
  launch_options.deadline_ms = 100000;
  return all_succeeded(launch(launch_options, [&](Bootstrap& bootstrap) -> Status {
    const Log log(bootstrap.rank());
    set_plugin_environment();
    auto library = PluginLibrary::load(plugin_path(), versions);
    if (!library) return library.status();
    Options options;
    options.channels = channels;
    options.algorithm = Algorithm::kCollNetChain;
    options.poison_tail = true;
    return body(**library, bootstrap, options, log);
  }));
}

Status expect(const Said& said, std::uint64_t sure, std::uint64_t unsure) {
  if (said.was_said && said.sure == sure && said.unsure == unsure) return Status::ok();
  return internal_error("said: " + std::to_string(said.sure) + " sure, " +
                        std::to_string(said.unsure) + " not; made: " + std::to_string(sure) +
                        " and " + std::to_string(unsure));
}

class IdentityOfPlugin : public ::testing::TestWithParam<int> {};

TEST_P(IdentityOfPlugin, IsSureOfEveryCall) {
  RIFFLE_NEEDS_PLUGIN();
  const Environment environment("on");
  for (const int channels : {2, 12}) {
    const Status status = on_ranks(
        {11, 11, 5, GetParam()}, channels,
        [](PluginLibrary& library, Bootstrap& b, const Options& options, const Log& log) -> Status {
          std::uint64_t calls = 0;
          // The second communicator comes after an end in the middle of things, on a new thread.
          for (const bool is_aborted : {false, true, false}) {
            auto comm = Communicator::create(library, b, options);
            if (!comm) return comm.status();
            if (Status s = work(**comm, b); !s) return s;
            if (is_aborted) {
              std::vector<float> large(8 << 20);
              if (Status s =
                      (*comm)->all_reduce(large.data(), large.data(), large.size(), kF32, Op::kSum);
                  !s) {
                return s;
              }
              if (Status s = (*comm)->abort(); !s) return s;
            } else if (Status s = (*comm)->destroy(); !s) {
              return s;
            }
            calls += (*comm)->collnet_calls();
            if (Status s = b.barrier(); !s) return s;
          }
          return expect(last_said(log.text()), calls, 0);
        });
    EXPECT_TRUE(status.is_ok()) << channels << " channels: " << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Profiler, IdentityOfPlugin, ::testing::Values(4, 5, 6),
                         [](const auto& info) { return "v" + std::to_string(info.param); });

TEST(IdentityOfPluginWithout, ProfilerIsSureOfNothing) {
  RIFFLE_NEEDS_PLUGIN();
  const Environment environment("on");
  const Status status = on_ranks(
      {11, 11, 5, 0}, 2,
      [](PluginLibrary& library, Bootstrap& b, const Options& options, const Log& log) -> Status {
        auto comm = Communicator::create(library, b, options);
        if (!comm) return comm.status();
        if (Status s = work(**comm, b); !s) return s;
        if (Status s = (*comm)->destroy(); !s) return s;
        const std::string text = log.text();
        if (text.find("not sure of one: NCCL asked for no profiler") == std::string::npos) {
          return internal_error("the reason was not said");
        }
        return expect(last_said(text), 0, (*comm)->collnet_calls());
      });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

// Nobody needs identities: no event is asked for, nothing is said.
TEST(IdentityOfPluginWithout, NeedAsksForNothing) {
  RIFFLE_NEEDS_PLUGIN();
  const Environment environment("auto");
  setenv("RIFFLE_VALID_LENGTH", "0", 1);
  const Status status = on_ranks(
      {11, 11, 5, 5}, 2,
      [](PluginLibrary& library, Bootstrap& b, const Options& options, const Log& log) -> Status {
        auto comm = Communicator::create(library, b, options);
        if (!comm) return comm.status();
        int mask = -1;
        void* context = &mask;
        if (library.profiler()->init(1, 3, b.rank(), &mask, &context) != kSuccess) {
          return internal_error("init failed");
        }
        if (mask != 0 || context != nullptr) return internal_error("events are asked for");
        if (Status s = work(**comm, b); !s) return s;
        if (Status s = (*comm)->destroy(); !s) return s;
        if (log.text().find("identity") != std::string::npos)
          return internal_error("something was said");
        return Status::ok();
      });
  unsetenv("RIFFLE_VALID_LENGTH");
  EXPECT_TRUE(status.is_ok()) << status.message();
}

}  // namespace
}  // namespace riffle::host::identity_plugin_test
