#include "test/modes/mean_reference.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace riffle::testing {

std::string MeanReference::check(const Call& call) {
  for (std::uint64_t begin = 0; begin < elements_; begin += segment_) {
    const std::uint64_t end = std::min(begin + segment_, elements_);
    std::vector<Member> nodes(nodes_);
    for (int r = 0; r < nodes_; ++r) {
      nodes[r].takes_part = call.took_part[r];
      nodes[r].group = call.group(begin / segment_, r);
      nodes[r].is_finite =
          std::ranges::all_of(std::span((*call.input)[r]).subspan(begin, end - begin),
                              [](float x) { return std::isfinite(x); });
    }
    for (std::uint64_t e = begin; e < end; ++e) {
      if (std::string wrong = check_element(call, nodes, e); !wrong.empty()) {
        return "element " + std::to_string(e) + ": " + wrong;
      }
    }
  }
  return "";
}

std::string MeanReference::check_element(const Call& call, const std::vector<Member>& nodes,
                                         std::uint64_t e) {
  double in = 0, out = 0, magnitude = 0;
  std::vector<double>& next = next_;
  next.resize(nodes_);
  bool all_finite = true;
  for (int r = 0; r < nodes_; ++r) {
    const double y = at_[r][e], g = static_cast<double>((*call.input)[r][e]);
    const float got = (*call.output)[r][e];
    double sum = 0;
    int members = 0;
    bool group_is_finite = true;
    for (const int m : nodes[r].group) {
      if (!nodes[m].takes_part) continue;
      ++members;
      sum += at_[m][e] + static_cast<double>((*call.input)[m][e]);
      group_is_finite &= nodes[m].is_finite;
    }
    all_finite &= group_is_finite;
    if (!nodes[r].takes_part) {
      next[r] = y + g;
    } else if (!group_is_finite) {
      if (std::isfinite(got)) return "finite where a member was not";
      next[r] = y;
      continue;
    } else {
      next[r] = sum / members;
    }
    const double expected = nodes_ * (next[r] - y);
    const double scale = 1 + std::fabs(next[r]) + std::fabs(y) + std::fabs(g);
    const double error = std::fabs(static_cast<double>(got) - expected) / (nodes_ * scale);
    worst_error_ = std::max(worst_error_, error);
    if (!(error <= 1e-5)) {
      return std::to_string(got) + " on node " + std::to_string(r) + ", expected " +
             std::to_string(expected);
    }
    in += g;
    out += static_cast<double>(got) / nodes_;
    magnitude += std::fabs(y) + std::fabs(g);
  }
  if (all_finite && std::fabs(out - in) > nodes_ * std::ldexp(1.0, -22) * magnitude) {
    return "the sum is not kept: " + std::to_string(out) + " of " + std::to_string(in);
  }
  for (int r = 0; r < nodes_; ++r) at_[r][e] = next[r];
  return "";
}

}  // namespace riffle::testing
