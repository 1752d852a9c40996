// Profiles with a neighbour: one all-reduce after the other, while a foreign flow comes and goes.
#pragma once

#include <string>
#include <vector>

#include "bench/harness/session.h"

namespace riffle::bench {

// One all-reduce of the series.
struct Moment {
  double end_s = 0;  // since the series began
  double time_us = 0;
  double bound_us = 0;  // of the network as it was then
  bool neighbour = false;
  std::size_t wrong = 0;
  std::vector<std::string> changes;  // of the plan, as logged since the one before

  double x_bound() const { return bound_us > 0 ? time_us / bound_us : 0; }
};

struct Series {
  std::string peer;
  std::string network, congestion;  // as in Row
  std::string mode;                 // that riffle said it went into; empty: exact
  std::vector<Moment> moments;
};

struct ContentionOptions {
  int before = 10, during = 40, after = 40;  // all-reduces
};

// The running peer's series. `progress` is told after every all-reduce.
Result<Series> contend(Session& session, const Question& question, const ContentionOptions& options,
                       const std::function<void(int done)>& progress);

// Time over bound in the phase that the `first`th all-reduce begins: the median of `count` of them
// after the first `skip`.
double median_x_bound(const Series& series, std::size_t first, std::size_t skip, std::size_t count);

std::string contention_table(const Series& series, const ContentionOptions& options);
std::string to_json(const std::vector<Series>& all);

}  // namespace riffle::bench
