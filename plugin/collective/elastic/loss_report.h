// Which nodes were lost between two terms, for the record and in words.
#pragma once

#include <functional>
#include <string>

#include "plugin/collective/elastic/regroup.h"
#include "plugin/telemetry/comm_record.h"

namespace riffle {

LossRecord loss_between(const Membership& before, const Membership& now, const Regroup& regroup,
                        double recovery_ms);

// One human-readable line. `nodes` of connect.
std::string describe(const LossRecord& loss, int nodes, bool rescales, const Regroup& regroup,
                     const std::function<std::string(int node)>& name_of);

}  // namespace riffle
