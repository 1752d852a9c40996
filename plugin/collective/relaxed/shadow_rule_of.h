// The rule that the settings of shadow_sync ask for, among so many nodes. Any thread.
#pragma once

#include <memory>

#include "plugin/collective/base/shadow_settings.h"
#include "plugin/collective/relaxed/rules/shadow_rule.h"

namespace riffle {

std::unique_ptr<rules::ShadowRule> shadow_rule_of(const ShadowSettings& settings, int nodes);

}  // namespace riffle
