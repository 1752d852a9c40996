// What all-reduces took beside what their plan was predicted to take: is the model of the network
// right?
#pragma once

#include <map>
#include <optional>

#include "tools/explain/job_record.h"

namespace riffle::tools {

// From here on it is wrong, as for the plugin's own trials (PlanTrials::kWrong).
inline constexpr double kModelError = 1.25;

// Time in collectives over what `plan` was predicted to take for as many bytes. `totals`: of nodes
// of `comm`, by rank, of a time from `since_t` (Unix time) on in which that plan was in force. None
// where no prediction holds: rates are nominal, a relaxed mode or other operations ran, or so
// little is summed at once that latency counts.
std::optional<double> over_prediction(const CommRecords& comm, const std::map<int, Sample>& totals,
                                      double since_t, const PlanEvent& plan);

// "model error (...)" where plans were tried for one, else the cause alone.
std::string cause_text(const PlanEvent& plan);

}  // namespace riffle::tools
