// The bench's human-readable rows (nccl-tests' columns) and for programs (JSON).
#pragma once

#include <string>
#include <vector>

#include "bench/harness/measure.h"

namespace riffle::bench {

// congestion: Session::congestion().
std::string table_head(const cluster::Profile& profile, bool emulated,
                       const std::string& congestion);
std::string table_line(const Row& row);
std::string to_json(const std::vector<Row>& rows);

}  // namespace riffle::bench
