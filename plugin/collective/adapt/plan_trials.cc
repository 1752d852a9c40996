#include "plugin/collective/adapt/plan_trials.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "topology/base/printed.h"

namespace riffle {
namespace {

constexpr std::uint64_t kLeastBytes = 256 << 10;  // of a burst: shorter ones are mostly latency
constexpr double kLeastOfTrials = 4 << 20;
constexpr std::uint64_t kSharedPercent = 5;
constexpr std::size_t kMostRaised = 3;
constexpr double kShownBytes = 32 << 20;
constexpr double kNever = std::numeric_limits<double>::max();  // a plan that cannot be used

// Without what only looks new: the same lanes need no trial.
void take(const Fabric& fabric, const PlanSet& current, std::uint64_t bytes, PlanOptions options,
          std::vector<Weighed>* plans) {
  options.only_if_it_applies = true;
  Result<PlanChoice> choice = plan(fabric, bytes, options);
  if (!choice) return;
  const auto is_known = [&](const Weighed& w) {
    return w.choice.plans.lanes == choice->plans.lanes;
  };
  if (choice->plans.lanes == current.lanes || std::any_of(plans->begin(), plans->end(), is_known)) {
    return;
  }
  // Kinds of plans that are forced come without one of their own, and it has no part in the trial.
  if (choice->plans.small.is_empty()) choice->plans.small = current.small;
  const double former_us = predict(fabric, current, bytes, options.message_ns).time_us;
  plans->push_back({fabric, std::move(*choice), former_us});
}

void take(const Fabric& fabric, const PlanSet& current, std::uint64_t bytes, PlanOptions options,
          const char* only, std::vector<Weighed>* plans) {
  options.only = only;
  take(fabric, current, bytes, std::move(options), plans);
}

// In racks many plans take about as long by the model, and it may err about one of them more than
// about the network: a hub that keeps all others waiting, levels that wait for each other.
void take_runner_up(const Fabric& base, const PlanSet& current, double measured_us,
                    std::uint64_t bytes, PlanOptions options, std::vector<Weighed>* plans) {
  if (base.racks.size() < 2) return;
  const Result<PlanChoice> choice = plan(base, bytes, options);
  if (!choice) return;
  for (const Candidate& c : choice->candidates) {
    if (c.name == current.name || c.time_us > measured_us) continue;
    options.exactly = c.name;
    return take(base, current, bytes, options, plans);
  }
}

Fabric without_racks(Fabric fabric) {
  fabric.racks = {{"all"}};
  for (NodeLink& n : fabric.nodes) n.rack = 0;
  return fabric;
}

// A link that has more than was told is never full, so nothing shows it but a plan that needs it.
// Where another link of the same file has turned out to be wrong, that is worth a try.
std::vector<Fabric> with_one_uplink_raised(const Fabric& base, const Fabric& live) {
  std::vector<Fabric> all;
  for (std::size_t k = 0; k < live.racks.size(); ++k) {
    const std::int64_t told = base.racks[k].up_kbps, now = live.racks[k].up_kbps;
    if (told == 0 || now < told) continue;
    Fabric& raised = all.emplace_back(live);
    raised.racks[k].up_kbps *= 2;
    raised.racks[k].down_kbps *= 2;
  }
  return all.size() < live.racks.size() ? all : std::vector<Fabric>();
}

// Else it is tried whatever the racks are.
bool is_for_racks(const Weighed& w) {
  const std::string& name = w.choice.plans.name;
  const bool is_simple = name == "ring" || name == "direct" || name.starts_with("tree");
  return w.fabric.racks.size() > 1 && !is_simple;
}

}  // namespace

bool PlanTrials::Tried::is_measured() const { return us_per_byte > 0 && us_per_byte < kNever; }

PlanTime plan_time(const std::vector<NodeRates>& reports) {
  PlanTime time;
  for (const NodeRates& r : reports) {
    time.processor = std::max(time.processor, r.processor);
    if (r.busy.bytes < kLeastBytes * std::max<std::uint64_t>(r.busy.bursts, 1)) continue;
    const double us_per_byte =
        static_cast<double>(r.busy.busy_ns) / 1e3 / static_cast<double>(r.busy.bytes);
    if (time.us_per_byte > 0 && us_per_byte >= time.us_per_byte) continue;
    time.us_per_byte = us_per_byte;
    time.burst_bytes = static_cast<double>(r.busy.bytes) /
                       static_cast<double>(std::max<std::uint64_t>(r.busy.bursts, 1));
  }
  const auto is_shared = [](const NodeRates& r) { return r.others >= kSharedPercent; };
  time.is_shared = std::any_of(reports.begin(), reports.end(), is_shared);
  return time;
}

PlanTime PlanTime::for_bursts_of(std::uint64_t bytes, double latency_us) const {
  PlanTime time = *this;
  if (us_per_byte == 0 || burst_bytes == 0) return time;
  const double longer = latency_us / burst_bytes - latency_us / static_cast<double>(bytes);
  time.us_per_byte = std::max(us_per_byte - longer, us_per_byte / 2);
  return time;
}

PlanTime PlanTime::for_trials() const {
  PlanTime time = *this;
  if (burst_bytes < kLeastOfTrials) time.us_per_byte = 0;
  return time;
}

std::vector<Weighed> plans_to_try(const PairTimes& pairs, const Fabric& base, const Fabric& live,
                                  const PlanSet& current, double measured_us, std::uint64_t bytes,
                                  const PlanOptions& options) {
  std::vector<Weighed> plans;
  take_runner_up(base, current, measured_us, bytes, options, &plans);
  if (!pairs.empty()) {
    for (const Fabric& seen : probe::racks_from_pairs(pairs, base)) {
      take(seen, current, bytes, options, "", &plans);
    }
  }
  std::vector<Weighed> raised;
  for (const Fabric& fabric : with_one_uplink_raised(base, live)) {
    take(fabric, current, bytes, options, "", &raised);
  }
  std::erase_if(raised, [](const Weighed& w) { return w.gain() < PlanTrials::kGain; });
  std::stable_sort(raised.begin(), raised.end(),
                   [](const Weighed& a, const Weighed& b) { return a.gain() > b.gain(); });
  if (raised.size() > kMostRaised) raised.resize(kMostRaised);
  std::move(raised.begin(), raised.end(), std::back_inserter(plans));
  const Fabric flat = without_racks(base);
  take(flat, current, bytes, options, "direct", &plans);
  std::vector<Weighed> simple;
  // Live rates hold links to be slow that only lose what many flows send at once.
  for (const char* name : {"ring", "tree"}) take(base, current, bytes, options, name, &simple);
  std::erase_if(simple, [=](const Weighed& w) { return w.choice.time_us > measured_us; });
  std::move(simple.begin(), simple.end(), std::back_inserter(plans));
  take(live, current, bytes, options, "", &plans);
  return plans;
}

bool PlanTrials::is_due(const PlanTime& time, double expected_us_per_byte, double first_us_per_byte,
                        bool both_ways, bool is_plausible) {
  ++intervals_since_;
  const bool is_known = time.us_per_byte > 0 && expected_us_per_byte > 0 && !time.is_shared;
  const double ratio = is_known ? time.us_per_byte / expected_us_per_byte : 1;
  const bool has_processor = time.processor < kNoProcessor;
  // Rates that were raised for nothing promise more than connect did.
  const bool is_as_at_first = is_known && time.us_per_byte <= kNeverRight * first_us_per_byte;
  const bool is_slow = ratio > kWrong && has_processor && !is_as_at_first;
  const bool is_fast = both_ways && ratio < 1 / kWrong;
  wrong_intervals_ = is_slow || is_fast ? wrong_intervals_ + 1 : 0;
  lag_intervals_ = ratio > kLag && has_processor ? lag_intervals_ + 1 : 0;
  first_us_ = first_us_per_byte;
  was_right_ = was_right_ || is_as_at_first;
  const bool has_time = was_right_ || is_plausible;
  const double slower = has_time ? kWrong : kNeverRight;
  if (is_known && has_processor && first_us_per_byte > 0) {
    const int weight = is_plausible ? 1 : kPlausible;
    doubt_ = expected_us_per_byte > slower * first_us_per_byte ? doubt_ + weight : 0;
  }
  // What a trial begins with must be known.
  const bool is_doubtful =
      is_known && has_processor && doubt_ >= (has_time ? kPlausible * pause_ : 1);
  return (wrong_intervals_ >= kIntervals || is_doubtful) && intervals_since_ >= pause_;
}

void PlanTrials::begin(Weighed current, const PlanTime& time, std::vector<Weighed> candidates,
                       std::uint64_t planned_bytes, double gain) {
  is_running_ = true;
  gain_ = gain;
  is_decided_ = is_explained_ = was_refused_ = false;
  refusals_ = blind_intervals_ = 0;
  wrong_intervals_ = lag_intervals_ = doubt_ = 0;
  planned_bytes_ = static_cast<double>(planned_bytes);
  tried_.clear();
  tried_.push_back({std::move(current), time.us_per_byte});
  in_force_ = 0;
  left_.assign(std::make_move_iterator(candidates.begin()),
               std::make_move_iterator(candidates.end()));
}

void PlanTrials::add(std::vector<Weighed> candidates) {
  std::size_t place = 0;
  for (Weighed& w : candidates) {
    const auto is_same = [&](const Weighed& other) {
      return other.choice.plans.lanes == w.choice.plans.lanes;
    };
    const bool is_tried = std::any_of(tried_.begin(), tried_.end(),
                                      [&](const Tried& t) { return is_same(t.weighed); });
    if (is_tried || std::any_of(left_.begin(), left_.end(), is_same)) continue;
    left_.insert(left_.begin() + static_cast<std::ptrdiff_t>(place++), std::move(w));
  }
}

// Of two plans' intervals only what is slower than both says something.
bool PlanTrials::took(const PlanTime& time, bool is_of_one_plan) {
  // What disturbs makes all-reduces slower: those that are faster in spite of it say enough.
  const bool is_disturbed = time.is_shared || time.processor >= kNoProcessor;
  const bool is_faster = time.us_per_byte * gain_ < fastest_us_per_byte();
  if (time.us_per_byte == 0 || (is_disturbed && !is_faster)) {
    if (++blind_intervals_ < kBlind) return false;
    // Calls have become small, or NICs are shared: back to what is known.
    left_.clear();
    tried_[in_force_].us_per_byte = kNever;
    return true;
  }
  const double hopeless_us = std::max(kHopeless * fastest_us_per_byte(), former_us_);
  if (!is_of_one_plan && time.us_per_byte <= hopeless_us) return false;
  Tried& now = tried_[in_force_];
  now.us_per_byte = time.us_per_byte;
  now.is_disturbed = is_disturbed;
  is_explained_ = false;
  if (is_disturbed) return true;
  const double predicted_us = now.weighed.choice.time_us / planned_bytes_;
  const bool is_explained = std::abs(now.us_per_byte / predicted_us - 1) <= kExplained;
  // Live rates explain anything by links that became slow, so that says nothing where what connect
  // knew was never right; but where the pairs were seen, it does.
  const bool is_doubtful =
      !was_right_ && first_us_ > 0 && predicted_us > kNeverRight * first_us_ && !has_seen_pairs();
  is_explained_ = is_explained && is_fastest_in_force() && !is_doubtful;
  if (is_explained_ || (!is_doubtful && lags_alike())) left_.clear();
  return true;
}

bool PlanTrials::lags_alike() const {
  const auto lag = [this](const Tried& t) {
    return t.us_per_byte * planned_bytes_ / t.weighed.choice.time_us;
  };
  const double former = lag(tried_.front()), now = lag(tried_[in_force_]);
  return former < kWrong && std::abs(now / former - 1) <= kAlike;
}

void PlanTrials::refused() {
  was_refused_ = true;
  ++refusals_;
  if (tried_[in_force_].us_per_byte == 0) {
    tried_[in_force_].us_per_byte = kNever;
  }
  in_force_ = former_;
  is_decided_ = false;
}

const Weighed* PlanTrials::next() {
  was_refused_ = false;
  if (refusals_ >= kMostRefusals) return nullptr;
  former_ = in_force_;
  former_us_ = tried_[in_force_].us_per_byte;
  blind_intervals_ = 0;
  while (!left_.empty() && is_refuted(left_.front())) left_.pop_front();
  if (!left_.empty()) {
    tried_.push_back({std::move(left_.front()), 0});
    left_.pop_front();
    in_force_ = tried_.size() - 1;
    return &in_force();
  }
  is_decided_ = true;
  if (is_fastest_in_force()) return nullptr;
  in_force_ = best();
  return &in_force();
}

bool PlanTrials::is_refuted(const Weighed& weighed) const {
  if (!is_for_racks(weighed)) return false;
  // The plan before the trial may just be one that the model errs about.
  return std::any_of(tried_.begin() + 1, tried_.end(), [&](const Tried& t) {
    if (!t.is_measured() || t.is_disturbed || !is_for_racks(t.weighed)) return false;
    const auto bytes = static_cast<std::uint64_t>(planned_bytes_);
    const double on_it_us =
        predict(weighed.fabric, t.weighed.choice.plans, bytes, message_ns_).time_us;
    return t.us_per_byte * planned_bytes_ > kRefuted * on_it_us;
  });
}

std::size_t PlanTrials::best() const {
  std::size_t best = 0;  // what was there before, unless another is clearly faster
  for (std::size_t i = 1; i < tried_.size(); ++i) {
    const double us = tried_[i].us_per_byte;
    const double gain = best == 0 ? gain_ : 1;
    if (us > 0 && us * gain < tried_[best].us_per_byte) best = i;
  }
  return best;
}

bool PlanTrials::is_contradicted(std::uint64_t planned_bytes) const {
  const Tried& fastest = tried_[best()];
  const double least_us = fastest.us_per_byte * static_cast<double>(planned_bytes);
  return std::any_of(tried_.begin(), tried_.end(), [&](const Tried& t) {
    if (&t == &fastest || !t.is_measured() || t.is_disturbed) return false;
    const double predicted_us =
        predict(fastest.weighed.fabric, t.weighed.choice.plans, planned_bytes, message_ns_).time_us;
    return predicted_us * kContradicted < least_us;
  });
}

bool PlanTrials::leaves_error() const {
  if (tried_.empty() || !is_former_fastest()) return false;
  const Tried& former = tried_.front();
  const double predicted_us = former.weighed.choice.time_us / planned_bytes_;
  return former.is_measured() && !former.is_disturbed &&
         former.us_per_byte > kWrong * std::max(predicted_us, error_us_);
}

bool PlanTrials::has_seen_pairs() const {
  return std::any_of(tried_.begin(), tried_.end(), [](const Tried& t) {
    return t.is_measured() && t.weighed.choice.plans.name == "direct";
  });
}

std::string PlanTrials::text() const {
  std::string text;
  for (const Tried& t : tried_) {
    if (t.us_per_byte == kNever) continue;
    text += (text.empty() ? "" : ", ") + t.weighed.choice.plans.name +
            printed(" %.3g", t.us_per_byte * kShownBytes / 1e6);
  }
  return text + " s for 32 MiB";
}

void PlanTrials::end() {
  if (leaves_error()) error_us_ = tried_.front().us_per_byte;
  is_running_ = false;
  pause_ = std::min(2 * pause_, kLongestPause);
  intervals_since_ = 0;
}

}  // namespace riffle
