// Operations after a loss: what can begin again, what makes no sense without the lost nodes, and
// how a sum over those that are left stands for all. Pure, but for the operations' memory.
#pragma once

#include <string>

#include "plugin/collective/engine/operation.h"

namespace riffle {

// Its input is as it was, or there is a copy.
bool is_repeatable(const Operation& operation);

// What keeps an operation from making sense without `lost` nodes; empty: nothing.
std::string objection(const Operation& operation, std::size_t lost, bool rescales);

// Begins again from the input: an input that was overwritten is put back from its copy.
void restore_input(const Operation& operation);

// Multiplies the result that `inner` brought for `user`.
void scale(const Operation& inner, const Operation& user, double factor);

}  // namespace riffle
