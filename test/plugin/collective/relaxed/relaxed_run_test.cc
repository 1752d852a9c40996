// The memory of a relaxed mode: what docs/policies.md says it takes, as allocated and as the kernel
// counts it once it is in use.
#include "plugin/collective/relaxed/relaxed_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace riffle::relaxed_run_test {
namespace {

constexpr std::uint64_t kCall = 256 << 10;  // elements: 1 MiB of float32
constexpr int kCalls = 100;

struct Kind {
  const char* name;
  SyncMode mode;
  double momentum;
  DataType type;
  double per_byte;  // of state, per byte of parameters
  ShadowVariant variant = ShadowVariant::kDelta;
};

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t whole = 0, resident = 0;
  statm >> whole >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

KnownCalls calls_of(DataType type) {
  KnownCalls calls;
  for (int i = 0; i < kCalls; ++i) {
    Layout::Piece p;
    p.bucket = static_cast<std::uint32_t>(i);
    p.valid = p.total = p.count = kCall;
    p.type = static_cast<int>(type);
    calls.pieces.push_back(p);
  }
  calls.digest = 1;
  return calls;
}

RelaxedOptions options_of(const Kind& kind) {
  RelaxedOptions options;
  options.size = 8;
  options.settings.mode = kind.mode;
  options.settings.momentum = kind.momentum;
  options.settings.shadow.variant = kind.variant;
  options.settings.state_limit_bytes = std::uint64_t{4} << 30;
  return options;
}

TEST(RelaxedRun, TakesTheMemoryThatTheDocumentSays) {
  const Kind kinds[] = {
      {"ds_sync, moshpit", SyncMode::kDsSync, 0, DataType::kFloat32, 1},
      {"... with RIFFLE_MOMENTUM", SyncMode::kDsSync, 0.9, DataType::kFloat32, 3},
      {"shadow_sync: delta", SyncMode::kShadowSync, 0, DataType::kFloat32, 2},
      {"... interpolation", SyncMode::kShadowSync, 0, DataType::kFloat32, 2,
       ShadowVariant::kInterpolation},
      {"... easgd", SyncMode::kShadowSync, 0, DataType::kFloat32, 2, ShadowVariant::kEasgd},
      {"... fir", SyncMode::kShadowSync, 0, DataType::kFloat32, 3, ShadowVariant::kFir},
      {"... bmuf", SyncMode::kShadowSync, 0, DataType::kFloat32, 3, ShadowVariant::kBmuf},
      {"ds_sync, bfloat16", SyncMode::kDsSync, 0, DataType::kBfloat16, 2},
      {"shadow_sync: delta, bfloat16", SyncMode::kShadowSync, 0, DataType::kBfloat16, 4},
  };
  for (const Kind& kind : kinds) {
    const RelaxedOptions options = options_of(kind);
    const double parameters = static_cast<double>(kCalls * kCall * size_of(kind.type));
    const std::size_t before = resident_bytes();
    const auto run = RelaxedRun::make({kind.mode, 1, 0}, calls_of(kind.type), options);
    ASSERT_TRUE(run) << run.status().message();
    for (RelaxedRun::Position& p : (*run)->positions()) {
      for (float* array : {p.state, p.second, p.third}) {
        if (array != nullptr) std::fill_n(array, kCall, 1.0F);
      }
    }
    const double used = static_cast<double>(resident_bytes() - before);
    const double staging = static_cast<double>((*run)->bytes()) - kind.per_byte * parameters;
    std::printf("%-29s %.3f bytes of state in use per byte of parameters, %.1f MiB of staging\n",
                kind.name, used / parameters, staging / (1 << 20));
    EXPECT_NEAR(used / parameters, kind.per_byte, 0.02 * kind.per_byte) << kind.name;
    EXPECT_LE(staging, options.staging_bytes + (1 << 20)) << kind.name;
    EXPECT_GT(staging, 0) << kind.name;
  }
}

TEST(RelaxedRun, OverTheLimitItDoesNotBeginAndSaysSo) {
  const Kind kind = {"", SyncMode::kShadowSync, 0, DataType::kFloat32, 2};
  RelaxedOptions options = options_of(kind);
  options.settings.state_limit_bytes = 200 << 20;
  const auto run = RelaxedRun::make({kind.mode, 1, 0}, calls_of(kind.type), options);
  ASSERT_FALSE(run);
  EXPECT_NE(run.status().message().find("RIFFLE_STATE_LIMIT_MB"), std::string::npos)
      << run.status().message();
}

}  // namespace
}  // namespace riffle::relaxed_run_test
