#include "bench/harness/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <sstream>

#include "bench/harness/cpu_load.h"
#include "lab/cluster/network.h"
#include "topology/plan/planner.h"

namespace riffle::bench {
namespace {

constexpr std::size_t kSmallBytes = 1 << 20;
constexpr int kSmallRepeats = 20;

struct Sample {
  double time_us = 0;
  double cpu_us = 0;
  std::size_t wrong = 0;
  double not_zero = 1;
};

// Over all nodes the outputs must add up to N times the inputs; what floats lose on the way is far
// below one lost contribution. `rounding`: what else may be lost of each.
class SumsKept {
 public:
  void add(std::istringstream* in) {
    for (auto* sums : {&in_, &out_}) {
      for (double& sum : *sums) {
        double x = 0;
        *in >> x;
        sum += x;
      }
    }
    ++nodes_;
  }
  bool is_kept(double rounding) const {
    // (Roundings of many elements cancel; a lost contribution is one in `nodes_`.)
    const double tolerance = (1e-5 + std::min(rounding, 0.25 / nodes_)) * nodes_ * in_[2];
    for (const int i : {0, 1}) {
      if (!(std::abs(out_[i] - nodes_ * in_[i]) <= tolerance)) return false;
    }
    return true;
  }

 private:
  std::array<double, 3> in_{}, out_{};
  int nodes_ = 0;
};

Result<Sample> evaluate(const std::vector<std::string>& answers, int repeats,
                        const Question& question) {
  std::int64_t first = INT64_MAX, last = 0;
  Sample sample;
  SumsKept sums;
  std::optional<std::uint64_t> common;  // of all results
  for (const std::string& answer : answers) {
    std::istringstream in(answer);
    std::string word;
    std::int64_t start = 0, end = 0, cpu = 0;
    std::size_t wrong = 0;
    in >> word >> start >> end >> cpu >> wrong;
    if (question.is_sparse || question.rounding > 0) {
      std::uint64_t hash = 0, not_zero = 0;
      in >> hash >> not_zero;
      sample.wrong += common.value_or(hash) != hash;
      common = hash;
      sample.not_zero = static_cast<double>(not_zero * size_of(question.type)) /
                        static_cast<double>(question.bytes);
    }
    if (question.is_relaxed && !question.is_sparse) sums.add(&in);
    if (word != "done" || !in) return internal_error("unexpected answer: " + answer);
    first = std::min(first, start);
    last = std::max(last, end);
    sample.cpu_us += static_cast<double>(cpu) / repeats;
    sample.wrong += wrong;
  }
  const bool is_step_whole = question.is_relaxed && !question.is_background && !question.is_sparse;
  if (is_step_whole && !sums.is_kept(question.rounding)) ++sample.wrong;
  sample.time_us = static_cast<double>(last - first) / 1e3 / repeats;
  return sample;
}

Result<std::vector<cluster::WireBytes>> read_wire(const Site& site) {
  std::vector<cluster::WireBytes> all;
  for (int n = 0; site.cluster && n < site.ranks; ++n) {
    auto bytes = site.cluster->wire_bytes(n);
    if (!bytes) return bytes.status();
    all.push_back(bytes.value());
  }
  return all;
}

// What the rates allow as payload: see lab/cluster/network.h.
double payload_bound_us(const Site& site, std::size_t bytes) {
  if (!site.cluster || !site.cluster->profile().shaped()) return 0;
  return bound_us(fabric_of(site.cluster->profile()), bytes) * cluster::kFrameBytes /
         cluster::kPayloadBytes;
}

class Measurement {
 public:
  Measurement(ControlHub& hub, const Site& site, const Question& question)
      : hub_(hub), site_(site), question_(question) {
    repeats_ = question.bytes < kSmallBytes ? kSmallRepeats : 1;
  }

  Status iterate(bool counts) {
    std::ostringstream order;
    order << "op " << question_.bytes << ' ' << static_cast<int>(question_.type) << ' '
          << static_cast<int>(question_.op) << ' ' << repeats_ << " 1 "
          << (question_.is_sparse      ? 2
              : question_.rounding > 0 ? 3
              : question_.is_relaxed   ? 1
                                       : 0);
    if (Status s = hub_.tell_all(order.str()); !s) return s;
    if (auto ready = hub_.hear_all(kAnswerMs); !ready) return ready.status();
    const auto before = read_wire(site_);
    if (!before) return before.status();
    cpu_.start();
    if (Status s = hub_.tell_all("go"); !s) return s;
    if (auto ran = hub_.hear_all(kAnswerMs); !ran) return ran.status();
    if (counts) cpu_.stop();
    if (Status s = hub_.tell_all("check"); !s) return s;
    const auto answers = hub_.hear_all(kAnswerMs);
    if (!answers) return answers.status();
    const auto sample = evaluate(answers.value(), repeats_, question_);
    if (!sample) return sample.status();
    const auto after = read_wire(site_);
    if (!after) return after.status();
    row_.wrong += sample->wrong;
    row_.not_zero = sample->not_zero;
    if (counts) {
      samples_.push_back(sample.value());
      add_wire(before.value(), after.value());
    }
    return Status::ok();
  }

  Row row() {
    row_.question = question_;
    row_.ranks = site_.ranks;
    row_.bound_us = payload_bound_us(site_, question_.bytes);
    row_.cpu_load = cpu_.load();
    for (const Sample& s : samples_) row_.samples_us.push_back(s.time_us);
    std::sort(samples_.begin(), samples_.end(),
              [](const Sample& a, const Sample& b) { return a.time_us < b.time_us; });
    const std::size_t n = samples_.size();
    row_.time_us = (samples_[(n - 1) / 2].time_us + samples_[n / 2].time_us) / 2;
    double cpu_us = 0;
    for (const Sample& s : samples_) {
      cpu_us += s.cpu_us;
      row_.mean_us += s.time_us / static_cast<double>(n);
    }
    row_.cpu_s_per_gb = cpu_us / 1e6 / static_cast<double>(n) / site_.ranks /
                        (static_cast<double>(question_.bytes) / 1e9);
    return row_;
  }

 private:
  void add_wire(const std::vector<cluster::WireBytes>& before,
                const std::vector<cluster::WireBytes>& after) {
    const double ideal = static_cast<double>(question_.bytes) * repeats_;
    for (std::size_t n = 0; n < after.size(); ++n) {
      const auto sent = static_cast<double>(after[n].sent - before[n].sent);
      const auto received = static_cast<double>(after[n].received - before[n].received);
      row_.sent_per_byte = std::max(row_.sent_per_byte, sent / ideal);
      // Whatever the algorithm, each node's data must leave it once and the result come in.
      row_.off_wire |= !question_.is_relaxed && std::min(sent, received) < ideal;
    }
  }

  ControlHub& hub_;
  const Site& site_;
  const Question& question_;
  int repeats_ = 1;
  CpuLoad cpu_;
  std::vector<Sample> samples_;
  Row row_;
};

}  // namespace

Result<Row> measure(ControlHub& hub, const Site& site, const Question& question,
                    const std::function<void(int done)>& progress) {
  Measurement measurement(hub, site, question);
  for (int i = 0; i < question.warmup + question.iters; ++i) {
    if (Status s = measurement.iterate(i >= question.warmup); !s) return s;
    progress(i + 1);
  }
  return measurement.row();
}

}  // namespace riffle::bench
