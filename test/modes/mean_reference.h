// What the calls of ds_sync and moshpit should give, one call of the job's step on all nodes after
// the other, in double precision and straight from the rule: who takes part moves to the mean of
// its group, or keeps all of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace riffle::testing {

class MeanReference {
 public:
  struct Call {
    const std::vector<std::vector<float>>* input = nullptr;
    const std::vector<std::vector<float>>* output = nullptr;
    std::vector<bool> took_part;  // by node
    // Whom a node averages with.
    std::function<std::vector<int>(std::uint64_t segment, int node)> group;
  };

  // `segment`: elements that have the same groups.
  MeanReference(int nodes, std::uint64_t elements, std::uint64_t segment)
      : nodes_(nodes),
        elements_(elements),
        segment_(segment),
        at_(nodes, std::vector<double>(elements, 0)) {}

  // The first wrong output, or empty.
  std::string check(const Call& call);

  double worst_error() const { return worst_error_; }

 private:
  struct Member {  // a node in the segment that is looked at
    std::vector<int> group;
    bool takes_part = false, is_finite = false;  // what it brings
  };

  std::string check_element(const Call& call, const std::vector<Member>& nodes, std::uint64_t e);

  const int nodes_;
  const std::uint64_t elements_, segment_;
  std::vector<std::vector<double>> at_;  // by node and element: what it moved by
  std::vector<double> next_;             // ... of the element that is looked at
  double worst_error_ = 0;
};

}  // namespace riffle::testing
