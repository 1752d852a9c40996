// The delta rule: a round sends the whole state, and what the mean of its members has beyond it is
// added to a later answer. Members' corrections add up to 0, so the mean of the nodes is that of
// exact training; whatever an earlier round left behind is made good by the next.
//
// second: the snapshot while a round is under way, then what is missing.
#include <algorithm>

#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "plugin/collective/relaxed/rules/shadow_rule.h"

namespace riffle::rules {
namespace {

class DeltaRule final : public ShadowRule {
 public:
  int arrays() const override { return 2; }

  void step(const ShadowState& s, bool is_due, const std::byte* g, int nodes, DataType type,
            std::size_t count, std::byte* out) const override {
    step_alone(g, is_due ? s.second : nullptr, nodes, count, s.y, type, out);
  }

  void begin(const ShadowState& s, std::size_t count, float* send) const override {
    std::copy_n(s.y, count, s.second);
    std::copy_n(s.y, count, send);
  }
  // A node that kept out keeps its own; what it still owes an earlier round's members it owes on.
  bool end(const ShadowState& s, bool took_part, bool is_due, const ShadowSum& mean,
           std::size_t count) const override {
    if (!took_part) return is_due;
    correction(mean.sum, mean.members, s.second, count, 1, s.second);
    return true;
  }
  bool lost(const ShadowState& /*s*/, bool took_part, bool is_due,
            std::size_t /*count*/) const override {
    return !took_part && is_due;
  }

  bool prepare_full(const ShadowState& s, bool is_due, const std::byte* g, DataType type,
                    std::size_t count, float* z) const override {
    if (!is_due) return prepare(s.y, g, type, count, z);
    // What others may have taken over already must not be lost to the mean.
    return prepare_missing(s.y, s.second, g, type, count, z);
  }
  void finish_full(const ShadowState& s, bool /*is_due*/, const ShadowSum& mean, int nodes,
                   bool resets, DataType type, std::size_t count, std::byte* out) const override {
    finish(mean.sum, mean.members, nodes, count, resets, s.y, type, out);
  }
};

}  // namespace

std::unique_ptr<ShadowRule> make_delta_rule() { return std::make_unique<DeltaRule>(); }

}  // namespace riffle::rules
