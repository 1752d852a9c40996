// Rules that draw nodes towards a centre: with the result of a round r = g + pull (c - y - g), that
// is y <- (1 - pull) (y + g) + pull c. They differ in what the centre is: the mean of the round's
// snapshots (ShadowMA as published: interpolation), one that follows that mean (EASGD), or one that
// goes on beyond it by a momentum of blocks (BMUF).
//
// A centre that follows is kept by every node for itself, from the same bits: every round moves it
// on all nodes, on those that keep out as well. Should two differ nevertheless, by another
// processor's rounding, the difference shrinks with every round, for both follow the same mean.
//
// second: the centre. third: BMUF's velocity.
#include <algorithm>

#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "plugin/collective/relaxed/rules/shadow_rule.h"

namespace riffle::rules {
namespace {

class CentreRule : public ShadowRule {
 public:
  explicit CentreRule(float pull) : pull_(pull) {}

  int arrays() const override { return 2; }

  void step(const ShadowState& s, bool is_due, const std::byte* g, int nodes, DataType type,
            std::size_t count, std::byte* out) const override {
    if (is_due) {
      step_towards(g, s.second, pull_, nodes, count, s.y, type, out);
    } else {
      step_alone(g, nullptr, nodes, count, s.y, type, out);
    }
  }

  void begin(const ShadowState& s, std::size_t count, float* send) const override {
    std::copy_n(s.y, count, send);
  }
  bool lost(const ShadowState& /*s*/, bool /*took_part*/, bool is_due,
            std::size_t /*count*/) const override {
    return is_due;
  }

  bool prepare_full(const ShadowState& s, bool is_due, const std::byte* g, DataType type,
                    std::size_t count, float* z) const override {
    if (!is_due) return prepare(s.y, g, type, count, z);
    return prepare_towards(s.y, s.second, pull_, g, type, count, z);
  }
  // The centre stays where it is; what it is measured from moves.
  void finish_full(const ShadowState& s, bool /*is_due*/, const ShadowSum& mean, int nodes,
                   bool resets, DataType type, std::size_t count, std::byte* out) const override {
    finish(mean.sum, mean.members, nodes, count, resets, s.y, type, out);
    if (resets) shift_centre(mean.sum, mean.members, count, s.second);
  }

 private:
  const float pull_;
};

class InterpolationRule final : public CentreRule {
 public:
  using CentreRule::CentreRule;

  // A node that kept out keeps its own.
  bool end(const ShadowState& s, bool took_part, bool is_due, const ShadowSum& mean,
           std::size_t count) const override {
    if (!took_part) return is_due;
    move_centre(mean.sum, mean.members, count, 1, s.second);
    return true;
  }
};

class EasgdRule final : public CentreRule {
 public:
  EasgdRule(float pull, float follow) : CentreRule(pull), follow_(follow) {}

  bool end(const ShadowState& s, bool /*took_part*/, bool /*is_due*/, const ShadowSum& mean,
           std::size_t count) const override {
    move_centre(mean.sum, mean.members, count, follow_, s.second);
    return true;
  }

 private:
  const float follow_;
};

class BmufRule final : public CentreRule {
 public:
  BmufRule(float pull, float rate, float momentum)
      : CentreRule(pull), rate_(rate), momentum_(momentum) {}

  int arrays() const override { return 3; }

  bool end(const ShadowState& s, bool /*took_part*/, bool /*is_due*/, const ShadowSum& mean,
           std::size_t count) const override {
    move_block(mean.sum, mean.members, count, rate_, momentum_, s.second, s.third);
    return true;
  }

 private:
  const float rate_, momentum_;
};

}  // namespace

std::unique_ptr<ShadowRule> make_interpolation_rule(float pull) {
  return std::make_unique<InterpolationRule>(pull);
}

std::unique_ptr<ShadowRule> make_easgd_rule(float pull, float follow) {
  return std::make_unique<EasgdRule>(pull, follow);
}

std::unique_ptr<ShadowRule> make_bmuf_rule(float pull, float block_rate, float block_momentum) {
  return std::make_unique<BmufRule>(pull, block_rate, block_momentum);
}

}  // namespace riffle::rules
