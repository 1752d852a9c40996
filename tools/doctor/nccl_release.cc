#include "tools/doctor/nccl_release.h"

#include <algorithm>
#include <span>

namespace riffle::tools {
namespace {

// From which release on, the newest first.
struct TableSince {
  int nccl, version;
};
constexpr TableSince kNetTables[] = {{23003, 12}, {22803, 11}, {22602, 10}, {22403, 9},
                                     {22003, 8},  {21901, 7},  {21304, 6},  {0, 5}};
constexpr TableSince kTunerTables[] = {{23003, 6}, {22803, 5}, {22403, 4},
                                       {22203, 3}, {22105, 2}, {21901, 1}};
constexpr TableSince kProfilerTables[] = {{22902, 6}, {22803, 5}, {22703, 4},
                                          {22602, 3}, {22403, 2}, {22304, 1}};
constexpr TableSince kEnvTables[] = {{23007, 2}, {22807, 1}};

int version_of(std::span<const TableSince> all, int nccl) {
  if (nccl == 0) return all.front().version;
  const auto found = std::ranges::find_if(all, [&](const TableSince& s) { return nccl >= s.nccl; });
  return found == all.end() ? 0 : found->version;
}

}  // namespace

TableVersions tables_read(int nccl) {
  return {version_of(kNetTables, nccl), version_of(kTunerTables, nccl),
          version_of(kProfilerTables, nccl), version_of(kEnvTables, nccl)};
}

std::string to_text(const TableVersions& tables) {
  std::string text = "NET and COLLNET v" + std::to_string(tables.net);
  const auto add = [&text](const char* kind, int version) {
    if (version > 0) text += std::string(", ") + kind + " v" + std::to_string(version);
  };
  add("TUNER", tables.tuner);
  add("PROFILER", tables.profiler);
  add("ENV", tables.env);
  return text;
}

}  // namespace riffle::tools
