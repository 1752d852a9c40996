// After a loss: sums over the survivors, multiplied so that they stand for all nodes.
//
// values[i] *= factor, in place: float32 and float64 rounded once; float16, bfloat16 and float8 by
// way of float32 (saturating as reduce.h says). The same bits on every machine: the factor is
// rounded to float32 (float64 for float64) first. Any thread; allocates nothing. Precondition:
// is_floating(type).
#pragma once

#include <cstddef>

#include "plugin/kernels/types.h"

namespace riffle {

bool is_floating(DataType type);
void rescale(void* values, std::size_t count, DataType type, double factor);

}  // namespace riffle
