// FIR per round (as DaSGD and CoCoD-SGD delay it): a round sends what the node did of its own since
// the last one, and what the mean of that has beyond it is added to a later answer. There is no
// feedback: every step's gradients travel once.
//
// So a difference that a round does not see stays. Behind every y stands the same base on all
// nodes, the sum of the rounds' means; y - base is what was gathered since, and what is due. All
// below keeps that true where a node keeps out: it takes the round's mean off what it gathered, for
// the base has moved; and where a round is lost its part goes into the next one. Rounds within
// groups would have other means in every group, and nothing would ever make these equal.
//
// second: what the round under way sent, then what is missing. third: gathered for the next.
#include <algorithm>

#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "plugin/collective/relaxed/rules/shadow_rule.h"

namespace riffle::rules {
namespace {

class FirRule final : public ShadowRule {
 public:
  int arrays() const override { return 3; }

  void step(const ShadowState& s, bool is_due, const std::byte* g, int nodes, DataType type,
            std::size_t count, std::byte* out) const override {
    step_gathering(g, is_due ? s.second : nullptr, nodes, count, s.y, s.third, type, out);
  }

  void begin(const ShadowState& s, std::size_t count, float* send) const override {
    std::copy_n(s.third, count, s.second);
    std::copy_n(s.third, count, send);
    std::fill_n(s.third, count, 0.0F);
  }
  bool end(const ShadowState& s, bool took_part, bool is_due, const ShadowSum& mean,
           std::size_t count) const override {
    if (took_part) {
      correction(mean.sum, mean.members, s.second, count, 1, s.second);
      return true;
    }
    shift_centre(mean.sum, mean.members, count, s.third);
    return is_due;
  }
  bool lost(const ShadowState& s, bool took_part, bool is_due, std::size_t count) const override {
    if (!took_part) return is_due;
    for (std::size_t i = 0; i < count; ++i) s.third[i] += s.second[i];
    return false;
  }

  bool prepare_full(const ShadowState& s, bool is_due, const std::byte* g, DataType type,
                    std::size_t count, float* z) const override {
    if (!is_due) return prepare(s.y, g, type, count, z);
    return prepare_missing(s.y, s.second, g, type, count, z);
  }
  // The base is 0 after a reset. Else some kept out, for whom it has not moved: what y moves by is
  // gathered, less what was due.
  void finish_full(const ShadowState& s, bool is_due, const ShadowSum& mean, int nodes, bool resets,
                   DataType type, std::size_t count, std::byte* out) const override {
    for (std::size_t i = 0; !resets && i < count; ++i) {
      s.third[i] -= s.y[i] + (is_due ? s.second[i] : 0);
    }
    finish(mean.sum, mean.members, nodes, count, resets, s.y, type, out);
    if (resets) {
      std::copy_n(s.y, count, s.third);  // what rounding left
    } else {
      for (std::size_t i = 0; i < count; ++i) s.third[i] += s.y[i];
    }
  }
};

}  // namespace

std::unique_ptr<ShadowRule> make_fir_rule() { return std::make_unique<FirRule>(); }

}  // namespace riffle::rules
