// What a relaxed mode would do on a network, as people look at it: who meets in which step, how
// fast that is against exact sums, how well it mixes, and what that means for the job's parameters.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/base/shadow_settings.h"
#include "tools/terminal/terminal.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/schedules/schedules.h"

namespace riffle::tools {

struct PolicyQuestion {
  ScheduleMode mode = ScheduleMode::kDsSync;
  ScheduleOptions options;
  int full_every = 64;    // as RIFFLE_FULL_EVERY; 0: never
  double momentum = 0;    // of the job's optimizer
  ShadowSettings shadow;  // of shadow_sync; `options` are to fit (put_into())
};

struct PolicyView {
  const Fabric* fabric;
  const ScheduleChoice* choice;
  PolicyQuestion question;

  // The mean time of a step, those over all nodes included; of a round in the background, which is
  // by the exact plan where it is over all nodes.
  double mean_us() const;
  double gain() const { return choice->exact_us / mean_us(); }
  std::string headline() const;
  // What the formulas of docs/policies.md give for this number of nodes and these groups, in units
  // of sigma^2: name and value.
  std::vector<std::pair<std::string, double>> formulas() const;
};

const char* name_of(ScheduleMode mode);

std::string to_text(const PolicyView& view, const Colours& colours);
std::string to_json(const PolicyView& view);

}  // namespace riffle::tools
