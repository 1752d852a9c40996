#include "bench/harness/turns.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "bench/harness/report.h"
#include "topology/base/printed.h"

namespace riffle::bench {
namespace {

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

// Which of n sorted values, counted from either end, bounds the median's 95 % interval: the largest
// k such that n fair coins show fewer than k heads in at most 2.5 % of all cases. 0: there is none.
std::size_t bound_of_interval(std::size_t n) {
  const auto size = static_cast<double>(n);
  double below = 0;
  std::size_t k = 0;
  for (; k < n; ++k) {
    const auto heads = static_cast<double>(k);
    below += std::exp(std::lgamma(size + 1) - std::lgamma(heads + 1) -
                      std::lgamma(size - heads + 1) - size * std::log(2.0));
    if (below > 0.025) break;
  }
  return k;
}

std::string ratio_line(const TurnsRow& row, const TurnsRow& first) {
  const PairedRatio r = paired_ratio(row.rounds, first.rounds);
  std::string text = printed("# time of %s / time of %s, %zu bytes: median of %zu rounds %.4f",
                             row.contender.name.c_str(), first.contender.name.c_str(),
                             row.rounds[0][0].question.bytes, r.rounds.size(), r.median);
  if (r.low > 0) text += printed(", with 95 %% within %.4f to %.4f", r.low, r.high);
  return text + printed("; all within %.4f to %.4f\n", r.least, r.greatest);
}

}  // namespace

PairedRatio paired_ratio(const Rounds& of_one, const Rounds& of_first) {
  PairedRatio ratio;
  for (std::size_t r = 0; r < of_one.size(); ++r) {
    std::vector<double> pairs;
    for (std::size_t t = 0; t < of_one[r].size(); ++t) {
      pairs.push_back(of_one[r][t].time_us / of_first[r][t].time_us);
    }
    ratio.rounds.push_back(median(pairs));
    ratio.pairs.push_back(std::move(pairs));
  }
  std::vector<double> sorted = ratio.rounds;
  std::ranges::sort(sorted);
  ratio.median = median(sorted);
  ratio.least = sorted.front();
  ratio.greatest = sorted.back();
  if (const std::size_t k = bound_of_interval(sorted.size()); k > 0) {
    ratio.low = sorted[k - 1];
    ratio.high = sorted[sorted.size() - k];
  }
  return ratio;
}

Row over_all(const TurnsRow& measured) {
  Row row = measured.rounds[0][0];
  std::vector<double> times;
  row.mean_us = row.cpu_load = row.cpu_s_per_gb = 0;
  const bool has_plans = row.plan_changes >= 0;
  row.plan_changes = has_plans ? 0 : -1;
  row.wrong = measured.wrong_in_warmup;
  int loads = 0;
  for (const std::vector<Row>& round : measured.rounds) {
    for (const Row& trial : round) {
      times.push_back(trial.time_us);
      row.mean_us += trial.time_us;
      row.cpu_s_per_gb += trial.cpu_s_per_gb;
      row.wrong += trial.wrong;
      row.off_wire |= trial.off_wire;
      if (has_plans) row.plan_changes += trial.plan_changes;
      row.sent_per_byte = std::max(row.sent_per_byte, trial.sent_per_byte);
      if (trial.cpu_load < 0) continue;
      row.cpu_load += trial.cpu_load;
      ++loads;
    }
  }
  row.question.iters = static_cast<int>(times.size());
  row.samples_us = times;
  row.mean_us /= row.question.iters;
  row.cpu_s_per_gb /= row.question.iters;
  row.time_us = median(times);
  row.cpu_load = loads > 0 ? row.cpu_load / loads : -1;
  return row;
}

std::vector<std::size_t> order_of(std::size_t contenders, std::size_t round, std::size_t trial) {
  std::vector<std::size_t> order(contenders);
  std::iota(order.begin(), order.end(), 0);
  const std::size_t first = (round + trial) % contenders;
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  std::mt19937_64 random(round << 32 | trial);
  std::shuffle(order.begin() + 1, order.end(), random);
  return order;
}

Status measure_round(const std::vector<std::unique_ptr<Session>>& sessions,
                     const Question& question, std::vector<TurnsRow>& rows) {
  const std::size_t round = rows[0].rounds.size();
  Question one = question;
  one.iters = 1;
  one.warmup = 0;
  for (TurnsRow& row : rows) row.rounds.emplace_back();
  const auto warmup_of = [&](const TurnsRow& row) {
    return row.contender.warmup < 0 ? question.warmup : row.contender.warmup;
  };
  int warmup = 0;
  for (const TurnsRow& row : rows) warmup = std::max(warmup, warmup_of(row));
  for (int i = 0; i < warmup + question.iters; ++i) {
    for (const std::size_t who : order_of(rows.size(), round, static_cast<std::size_t>(i))) {
      if (i < warmup - warmup_of(rows[who])) continue;  // all end their warm-up together
      auto trial = sessions[who]->ask(one, [](int) {});
      if (!trial) return trial.status();
      trial->plan_changes = sessions[who]->count_plan_changes();  // also since the trial before
      if (i < warmup) {
        rows[who].wrong_in_warmup += trial->wrong;
      } else {
        rows[who].rounds.back().push_back(std::move(*trial));
      }
    }
  }
  return Status::ok();
}

std::string turns_table(const std::vector<TurnsRow>& rows) {
  std::string text;
  for (const TurnsRow& row : rows) text += table_line(over_all(row));
  for (std::size_t i = 1; i < rows.size(); ++i) text += ratio_line(rows[i], rows[0]);
  return text;
}

nlohmann::json to_json(const std::vector<TurnsRow>& rows) {
  nlohmann::json items = nlohmann::json::array();
  for (const TurnsRow& row : rows) {
    nlohmann::json item = nlohmann::json::parse(to_json(std::vector<Row>{over_all(row)}))[0];
    item["plugin"] = row.contender.rival ? nlohmann::json() : nlohmann::json(row.contender.file);
    item["ratio"] = nullptr;
    item["trials"] = nlohmann::json::array();
    for (std::size_t r = 0; r < row.rounds.size(); ++r) {
      for (const Row& trial : row.rounds[r]) {
        item["trials"].push_back({{"round", r},
                                  {"time_us", trial.time_us},
                                  {"cpu_s_per_gb", trial.cpu_s_per_gb},
                                  {"sent_per_byte", trial.sent_per_byte},
                                  {"wrong", trial.wrong}});
      }
    }
    if (!items.empty()) {
      const PairedRatio r = paired_ratio(row.rounds, rows[0].rounds);
      item["ratio"] = {{"to", rows[0].contender.name},
                       {"median", r.median},
                       {"least", r.least},
                       {"greatest", r.greatest},
                       {"rounds", r.rounds},
                       {"pairs", r.pairs},
                       {"low_95", nullptr},
                       {"high_95", nullptr}};
      if (r.low > 0) item["ratio"].update({{"low_95", r.low}, {"high_95", r.high}});
    }
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace riffle::bench
