// A recorded run of NCCL's host code (lab/nccl_host/traces/README.md): one JSON object per plugin
// call.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::host {

using Json = nlohmann::json;

struct Trace {
  Json header;
  std::vector<Json> calls;  // net, collnet and tuner; profiler lines where asked for
  bool has(const char* interface, const char* call) const;
};

// All scenarios of a release folder, sorted.
std::vector<std::string> scenarios(const std::string& folder);
// Plain or gzipped. Fails with the file's name when it is missing or malformed.
Result<Trace> read_trace(const std::string& folder, const std::string& scenario, int rank,
                         bool with_profiler = false);

}  // namespace riffle::host
