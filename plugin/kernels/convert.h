// Gradients between the job's type and float32: exact one way, rounded to nearest even the other,
// NaN to the type's one quiet NaN. float32, float16 and bfloat16.
//
// No alignment is required beyond the type's own. Any thread, under DefaultFloatEnvironment.
#pragma once

#include <cstddef>

#include "plugin/kernels/types.h"

namespace riffle::rules {

bool supports(DataType type);

// Precondition of both: supports(type).
void widen(const std::byte* from, DataType type, std::size_t count, float* to);
void narrow(const float* from, DataType type, std::size_t count, std::byte* to);

}  // namespace riffle::rules
