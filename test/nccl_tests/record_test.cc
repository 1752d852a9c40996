// nccl-tests-patches/src/riffle_record.h: it finds the file that the plugin writes, and in it what
// the plugin meant.
#include "nccl-tests-patches/src/riffle_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "plugin/config/file_pattern.h"
#include "plugin/telemetry/comm_record.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/planner.h"

namespace riffle::nccl_record_test {
namespace {

using riffle_tests::PlanInForce;
using riffle_tests::read_plan;
using riffle_tests::record_of_process;

TEST(NcclRecord, TheFileIsTheOneThatThePluginWrites) {
  setenv("RANK", "12", 1);
  setenv("SLURM_JOB_ID", "../345", 1);
  const std::string folder = ::testing::TempDir();
  for (const std::string& pattern :
       {folder, folder + "/none/", std::string("run1"), std::string("a.%h.%p"),
        std::string("%j.%r.jsonl"), std::string("100%%.%p")}) {
    EXPECT_EQ(record_of_process(pattern), *file_of_process("RIFFLE_RECORD", pattern, "jsonl"))
        << pattern;
  }
  EXPECT_FALSE(file_of_process("RIFFLE_RECORD", "%x", "jsonl"));
  EXPECT_EQ(record_of_process("%x"), "");
  EXPECT_EQ(record_of_process(""), "");
  unsetenv("RANK");
  unsetenv("SLURM_JOB_ID");
}

PlanInForce plan_after(const std::function<void(CommRecord&)>& events) {
  const std::string path =
      ::testing::TempDir() + "/nccl_record." + std::to_string(getpid()) + ".jsonl";
  {
    CommRecord record(*Recorder::open(path, 1 << 20), 1, 0, 2);
    record.connected({"h0", "\"name\":\"h1\""});
    events(record);
  }
  std::ifstream in(path);
  const PlanInForce plan = read_plan(in);
  std::filesystem::remove(path);
  return plan;
}

TEST(NcclRecord, TheLastPlanCountsWithItsBound) {
  const Fabric first = even_fabric(2, 1'000'000), second = even_fabric(2, 100'000);
  const PlanInForce plan = plan_after([&](CommRecord& record) {
    record.planned({.cause = "connect", .reason = "r", .name = "ring", .fabric = &first});
    record.planned({.from_chunk = 3,
                    .cause = R"(said "name":"direct" \ twice)",
                    .reason = "r",
                    .name = R"(two "x" two)",
                    .fabric = &second});
  });
  EXPECT_EQ(plan.name, R"(two "x" two)");
  EXPECT_EQ(plan.mode, "");
  EXPECT_NEAR(plan.bound_us_per_mib, bound_us(second, 1 << 20), 1e-3 * plan.bound_us_per_mib);
  // 8 Mibit over 100 Mbit/s.
  EXPECT_NEAR(plan.bound_us_per_mib, 83'886, 10);
}

TEST(NcclRecord, AModeIsRead) {
  const PlanInForce plan = plan_after([](CommRecord& record) {
    record.planned({.cause = "connect", .reason = "r", .name = "ring"});
    record.mode_changed({.mode = "ds_sync", .from_call = 1, .cause = "c", .rule = ""});
    record.mode_changed({.mode = "sparse", .from_call = 9, .cause = "c", .rule = ""});
  });
  EXPECT_EQ(plan.name, "ring");
  EXPECT_EQ(plan.mode, "sparse");
  EXPECT_EQ(plan.bound_us_per_mib, 0) << "nothing was known of the network";
}

TEST(NcclRecord, LinesThatAreCutOffAndOtherTextDoNotCount) {
  std::istringstream in(
      "\n{\"type\":\"plan\",\"name\":\"ring\",\"bound_us_per_mib\":2.5}\n"
      "{\"type\":\"sample\",\"name\":\"no\"}\nnot json\n"
      "{\"type\":\"plan\",\"name\":\"dir");
  const PlanInForce plan = read_plan(in);
  EXPECT_EQ(plan.name, "ring");
  EXPECT_EQ(plan.bound_us_per_mib, 2.5);
}

}  // namespace
}  // namespace riffle::nccl_record_test
