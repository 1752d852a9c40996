// The page of `riffle top`: plain text, in the order of what to look at first.
#pragma once

#include <string>
#include <vector>

#include "tools/explain/job_record.h"
#include "tools/live/live_view.h"
#include "tools/terminal/terminal.h"

namespace riffle::tools {

// `now_t`: Unix time, for how long ago things were. Of more nodes than kShownNodes those that are
// lost, waited for or busiest are shown.
inline constexpr std::size_t kShownNodes = 40;
std::string to_text(const std::vector<LiveView>& views, const JobRecord& job, double now_t,
                    const Colours& colours);

}  // namespace riffle::tools
