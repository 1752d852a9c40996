#include "plugin/collective/relaxed/shadow_rule_of.h"

namespace riffle {

std::unique_ptr<rules::ShadowRule> shadow_rule_of(const ShadowSettings& s, int nodes) {
  const auto pull = static_cast<float>(s.pull);
  switch (s.variant) {
    case ShadowVariant::kDelta:
      break;
    case ShadowVariant::kInterpolation:
      return rules::make_interpolation_rule(pull);
    case ShadowVariant::kBmuf:
      return rules::make_bmuf_rule(pull, static_cast<float>(s.block_rate),
                                   static_cast<float>(s.momentum_among(nodes)));
    case ShadowVariant::kEasgd:
      return rules::make_easgd_rule(pull, static_cast<float>(s.follow));
    case ShadowVariant::kFir:
      return rules::make_fir_rule();
  }
  return rules::make_delta_rule();
}

}  // namespace riffle
