// A collective of an engine test on all its nodes, and the check of every byte that it may have
// written: integers and extrema exactly, sums and products within what roundings allow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plugin/collective/engine/engine.h"
#include "plugin/kernels/types.h"
#include "test/plugin/kernels/numbers.h"

namespace riffle::testing {

struct Call {
  Collective collective;
  DataType type;
  ReduceOp op;
  std::uint64_t count;
  std::uint64_t block;  // reduce-scatter, all-gather
  std::uint64_t window;
  bool in_place;
  std::int64_t step = Operation::kExact;
  std::uint32_t lane = 0;
  std::uint64_t valid = 0;                                // elements that are reduced
  std::vector<std::vector<std::byte>> input, send, recv;  // per node; recv has guard bytes
  std::vector<std::unique_ptr<Operation>> operations;
};

inline constexpr std::size_t kGuardBytes = 64;

// The part of node r's block inside the window, in elements of the window.
inline Range block_in_window(const Call& c, int r) {
  const auto clip = [&](std::uint64_t e) {
    return std::min(e > c.window ? e - c.window : 0, c.count);
  };
  return {clip(r * c.block), clip((r + 1) * c.block)};
}

class CallCheck {
 public:
  // `roundings`: that one element of a narrow type may see on its way.
  CallCheck(int nodes, int roundings) : nodes_(nodes), roundings_(roundings) {}

  // What is wrong, empty if nothing is.
  // `partners`: whom a node sums with, itself included, in the order of the group.
  template <class Partners>  // std::vector<int>(int node)
  std::string check(const Call& c, Partners&& partners) const {
    const std::size_t size = size_of(c.type);
    for (int r = 0; r < nodes_; ++r) {
      const std::vector<int> group = partners(r);
      for (std::size_t i = c.count * size; i < c.recv[r].size(); ++i) {
        if (c.recv[r][i] != std::byte{0xA5})
          return "wrote behind the buffer of node " + std::to_string(r);
      }
      if (!c.in_place && c.send[r] != c.input[r]) return "changed the send buffer";
      const Range own = block_in_window(c, r);
      for (std::uint64_t e = 0; e < c.count; ++e) {
        const std::byte* got = &c.recv[r][e * size];
        std::string wrong;
        if (e >= c.valid) {
          const std::vector<std::byte> before(size, std::byte{0xA5});
          const std::byte* was = c.in_place ? &c.input[r][e * size] : before.data();
          if (std::memcmp(got, was, size) != 0) wrong = "written though not valid";
        } else if (c.collective == Collective::kAllGather) {
          const auto owner = static_cast<int>((c.window + e) / c.block);
          if (*got != c.input[owner][e]) wrong = "not the owner's byte";
        } else if (c.collective == Collective::kReduceScatter && (e < own.begin || e >= own.end)) {
          if (*got != std::byte{0xA5}) wrong = "written outside the own block";
        } else {
          wrong = compare(c, e, got, group);
          if (c.collective == Collective::kAllReduce &&
              std::memcmp(got, &c.recv[group[0]][e * size], size) != 0) {
            wrong += " differs from node " + std::to_string(group[0]);
          }
        }
        if (!wrong.empty()) {
          return "element " + std::to_string(e) + " of " + std::to_string(c.count) + " on node " +
                 std::to_string(r) + ", " + name_of(c.type) + " " + name_of(c.op) + ": " + wrong;
        }
      }
    }
    return "";
  }

 private:
  static std::string compare_integers(const Call& c, std::uint64_t e, const std::byte* got,
                                      const std::vector<int>& group) {
    const std::size_t size = size_of(c.type);
    std::uint64_t expect = integer_bits(&c.input[group[0]][e * size], c.type);
    for (std::size_t i = 1; i < group.size(); ++i) {
      expect = combine(c, expect, integer_bits(&c.input[group[i]][e * size], c.type));
    }
    const std::uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    return (expect & mask) == integer_bits(got, c.type) ? "" : "wrong integer";
  }

  std::string compare(const Call& c, std::uint64_t e, const std::byte* got,
                      const std::vector<int>& group) const {
    const std::size_t size = size_of(c.type);
    if (!is_float(c.type)) {
      return compare_integers(c, e, got, group);
    }
    double expect = 0, magnitude = 0;
    for (const int r : group) {
      const double x = decode(&c.input[r][e * size], c.type);
      if (r == group[0]) {
        expect = x;
        magnitude = c.op == ReduceOp::kProd ? std::max(1.0, std::fabs(x)) : std::fabs(x);
        continue;
      }
      switch (c.op) {
        case ReduceOp::kSum:
          expect += x, magnitude += std::fabs(x);
          break;
        case ReduceOp::kProd:
          expect *= x, magnitude *= std::max(1.0, std::fabs(x));
          break;
        case ReduceOp::kMax:
          expect = std::max(expect, x);
          break;
        case ReduceOp::kMin:
          expect = std::min(expect, x);
          break;
      }
    }
    const double value = decode(got, c.type);
    const bool exact = c.op == ReduceOp::kMax || c.op == ReduceOp::kMin;
    const bool wide = c.type == DataType::kFloat32 || c.type == DataType::kFloat64;
    // Absolute errors of a sum add up along one path; relative errors of a product over all
    // operands.
    const int steps = wide || c.op == ReduceOp::kProd ? nodes_ : roundings_;
    const double unit = rounding_unit(c.type) * (1 + 1e-2);
    const double limit =
        exact ? 0 : magnitude * (std::pow(1 + unit, steps) - 1) + steps * smallest(c.type);
    if (std::fabs(value - expect) <= limit) return "";
    return "got " + std::to_string(value) + ", expected " + std::to_string(expect) + " within " +
           std::to_string(limit);
  }

  static std::uint64_t combine(const Call& c, std::uint64_t a, std::uint64_t b) {
    const std::size_t size = size_of(c.type);
    switch (c.op) {
      case ReduceOp::kSum:
        return a + b;
      case ReduceOp::kProd:
        return a * b;
      default:
        break;
    }
    bool less;
    if (is_signed_integer(c.type)) {
      less = sign_extend(a, size) < sign_extend(b, size);
    } else {
      less = a < b;
    }
    return (c.op == ReduceOp::kMax) == less ? b : a;
  }

  const int nodes_;
  const int roundings_;
};

}  // namespace riffle::testing
