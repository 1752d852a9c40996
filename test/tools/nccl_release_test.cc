// tools/doctor: what a release of NCCL reads, against all releases in the table of test/abi.
#include "tools/doctor/nccl_release.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tools/env/nccl_environment.h"

namespace riffle::tools::nccl_release_test {
namespace {

// The newest comes first in a cell, "12 11 10"; none: it is empty.
int newest(const std::string& cell) { return cell.empty() ? 0 : std::stoi(cell); }

TEST(NcclRelease, ReadsWhatTheTableOfAllReleasesSays) {
  std::ifstream in(RIFFLE_VERSION_MATRIX);
  std::string line;
  std::getline(in, line);
  ASSERT_TRUE(line.starts_with("nccl_release,version_code,net,collnet,tuner,profiler,env,"))
      << line;
  int releases = 0;
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    ASSERT_GE(cells.size(), 6u) << line;
    cells.resize(7);
    const TableVersions tables = tables_read(std::stoi(cells[1]));
    EXPECT_EQ(tables.net, newest(cells[2])) << line;
    EXPECT_EQ(tables.net, newest(cells[3])) << line;
    EXPECT_EQ(tables.tuner, newest(cells[4])) << line;
    EXPECT_EQ(tables.profiler, newest(cells[5])) << line;
    EXPECT_EQ(tables.env, newest(cells[6])) << line;
    ++releases;
  }
  EXPECT_GT(releases, 35);
}

TEST(NcclRelease, InWords) {
  EXPECT_EQ(to_text(tables_read(22809)), "NET and COLLNET v11, TUNER v5, PROFILER v5, ENV v1");
  EXPECT_EQ(to_text(tables_read(21207)), "NET and COLLNET v5");
  EXPECT_EQ(to_text(tables_read(0)), "NET and COLLNET v12, TUNER v6, PROFILER v6, ENV v2");
}

}  // namespace
}  // namespace riffle::tools::nccl_release_test
