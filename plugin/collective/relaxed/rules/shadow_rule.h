// ShadowRule: what the background rounds of shadow_sync do to a node's gradients, one class per
// idea (docs/policies.md). Its functions are called for one segment of a call each, in the order of
// the calls; a round of a segment is over before the next one begins.
//
//   step()          answers a call; `is_due`: the last round's result is to be brought in
//   begin()         what a round sends, right after a step(); then end() or lost() once it is over
//   prepare_full()  what a step over all nodes sends; then finish_full(), or step(), not due, if
//                   the node keeps its own
//
// A node that keeps out of a round (it is not certain which gradients a call holds) has end() and
// lost() called as well, and no begin(): what all nodes keep alike must move on all of them.
//
// Rules have no state of their own: any thread, for states that no other thread uses.
#pragma once

#include <cstddef>
#include <memory>

#include "plugin/kernels/convert.h"

namespace riffle::rules {

// Of a segment's elements, float32, all 0 at the beginning. Null: the rule has no such array.
struct ShadowState {
  float* y = nullptr;       // what the job got (gradient_rules.h)
  float* second = nullptr;  // the rule's own, as the next
  float* third = nullptr;
};

// What a round or a step over all nodes brought, the same bits on every member.
struct ShadowSum {
  const float* sum = nullptr;
  int members = 1;  // contributions
};

class ShadowRule {
 public:
  virtual ~ShadowRule() = default;

  virtual int arrays() const = 0;  // of ShadowState, from 1 to 3

  virtual void step(const ShadowState& s, bool is_due, const std::byte* g, int nodes, DataType type,
                    std::size_t count, std::byte* out) const = 0;

  virtual void begin(const ShadowState& s, std::size_t count, float* send) const = 0;
  // Both: whether anything is due from now on, `is_due` being what was.
  virtual bool end(const ShadowState& s, bool took_part, bool is_due, const ShadowSum& mean,
                   std::size_t count) const = 0;
  // The round came to nothing, on all its members.
  virtual bool lost(const ShadowState& s, bool took_part, bool is_due, std::size_t count) const = 0;

  // False if anything is not finite.
  virtual bool prepare_full(const ShadowState& s, bool is_due, const std::byte* g, DataType type,
                            std::size_t count, float* z) const = 0;
  // Nothing is due any more. `resets`: all nodes took part, and take the mean off their states.
  virtual void finish_full(const ShadowState& s, bool is_due, const ShadowSum& mean, int nodes,
                           bool resets, DataType type, std::size_t count, std::byte* out) const = 0;
};

// Each in a file of its own.
std::unique_ptr<ShadowRule> make_delta_rule();
std::unique_ptr<ShadowRule> make_fir_rule();
std::unique_ptr<ShadowRule> make_interpolation_rule(float pull);
std::unique_ptr<ShadowRule> make_easgd_rule(float pull, float follow);
std::unique_ptr<ShadowRule> make_bmuf_rule(float pull, float block_rate, float block_momentum);

}  // namespace riffle::rules
