// Shared objects, or Riffle and its rivals, measured in turns, one all-reduce each, on the same
// emulated cluster: what else the machine does meanwhile meets all of them, and the ratio of two
// neighbours in time hardly feels it. Where the kernel puts processes and threads stays as it is
// for as long as they live, and may be worth more than any difference of code: hence rounds, for
// each of which all start anew.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/contenders.h"
#include "bench/harness/session.h"

namespace riffle::bench {

// By round and trial; a trial is one all-reduce, or a run of small ones.
using Rounds = std::vector<std::vector<Row>>;

// Times of one contender over those of the first one.
struct PairedRatio {
  std::vector<std::vector<double>> pairs;      // by round and trial
  std::vector<double> rounds;                  // median of a round's pairs
  double median = 0, least = 0, greatest = 0;  // of the rounds
  // Within these lies the median of all rounds that could have been measured, with 95 % probability
  // whatever the distribution (order statistics); 0: fewer than 6 rounds cannot say.
  double low = 0, high = 0;
};
// Both of as many rounds and trials, one at least.
PairedRatio paired_ratio(const Rounds& of_one, const Rounds& of_first);

// One contender and one size.
struct TurnsRow {
  Contender contender;
  Rounds rounds;
  std::size_t wrong_in_warmup = 0;
};

// All trials as one row: median and mean time, the sum of wrong elements.
Row over_all(const TurnsRow& row);

// The order of contenders in one trial of a round: with every trial and round another one comes
// first; the others follow in an order of that trial, so that none always comes behind the same
// one. The same in every run.
std::vector<std::size_t> order_of(std::size_t contenders, std::size_t round, std::size_t trial);

// One more round, appended to the rows of all contenders, whose sessions' peers run.
Status measure_round(const std::vector<std::unique_ptr<Session>>& sessions,
                     const Question& question, std::vector<TurnsRow>& rows);

// What was measured with one size, the first contender's row first.
std::string turns_table(const std::vector<TurnsRow>& rows);
// As to_json(Row), with every trial.
nlohmann::json to_json(const std::vector<TurnsRow>& rows);

}  // namespace riffle::bench
