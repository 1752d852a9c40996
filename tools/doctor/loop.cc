#include "tools/doctor/loop.h"

#include <unistd.h>
#include <cstdlib>

#include <chrono>
#include <string_view>
#include <vector>

#include "lab/nccl_host/communicator.h"
#include "lab/nccl_host/launcher.h"

namespace riffle::tools {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = std::size_t{1} << 20;
constexpr int kDeadlineMs = 30'000;
constexpr const char* kRemedy = "report this with what NCCL_DEBUG=INFO says";

void take_defaults() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("RIFFLE_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  setenv("RIFFLE_CONF_FILE", "/dev/null", 1);
  setenv("RIFFLE_SOCKET_IFNAME", "=lo", 1);
  setenv("RIFFLE_NET", "tcp", 1);     // loopback is no RDMA port
  setenv("RIFFLE_COLLNET", "on", 1);  // auto would rightly leave one machine to NCCL
  setenv("RIFFLE_PROBE", "off", 1);
}

Status add_up(const std::string& path, host::Bootstrap& bootstrap) {
  auto library = host::PluginLibrary::load(path, {});
  if (!library) return library.status();
  auto comm = host::Communicator::create(*library.value(), bootstrap, {});
  if (!comm) return comm.status();
  host::Communicator& job = *comm.value();
  const auto mine = static_cast<float>(bootstrap.rank() + 1);
  std::vector<float> data(kCount), sum(kCount);
  for (std::size_t i = 0; i < kCount; ++i) data[i] = mine + static_cast<float>(i % 251);
  Status s = job.all_reduce(data.data(), sum.data(), kCount, DataType::kFloat32, host::Op::kSum);
  if (s) s = job.wait();
  if (!s) return s;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float right = kRanks * (kRanks + 1) / 2 + kRanks * static_cast<float>(i % 251);
    if (sum[i] == right) continue;
    return internal_error("element " + std::to_string(i) + " is " + std::to_string(sum[i]) +
                          ", not " + std::to_string(right));
  }
  if (job.collnet_calls() == 0) return internal_error("COLLNET was not used");
  return job.destroy();
}

}  // namespace

void check_loop(const std::string& path, Verdicts* verdicts) {
  std::string trouble;
  host::LaunchOptions options;
  options.ranks = kRanks;
  options.deadline_ms = options.bootstrap_deadline_ms = kDeadlineMs;
  options.on_note = [&trouble](int rank, const std::string& text) {
    if (trouble.empty()) trouble = "process " + std::to_string(rank) + ": " + text;
  };
  const auto begun = std::chrono::steady_clock::now();
  const Status done = host::all_succeeded(host::launch(options, [&](host::Bootstrap& bootstrap) {
    take_defaults();
    const Status s = add_up(path, bootstrap);
    return s ? s : bootstrap.note(s.message());
  }));
  if (trouble.empty() && !done) trouble = done.message();
  const std::string what =
      "all-reduce of 4 MiB among " + std::to_string(kRanks) + " processes over loopback";
  if (!trouble.empty()) return verdicts->problem(what + " fails: " + trouble, kRemedy);
  const auto took = std::chrono::steady_clock::now() - begun;
  verdicts->good(what + ": right, " + std::to_string(took / std::chrono::milliseconds(1)) +
                 " ms with connecting");
}

}  // namespace riffle::tools
