// Which instruction set the selection kernels use, chosen at run time.
#pragma once

#include "topology/base/isa.h"

namespace riffle::sparse {

using riffle::Isa;

// Whether this processor has it and the library was built with it.
bool is_available(Isa isa);
// The best available; any thread, the same answer every time.
Isa best_isa();

}  // namespace riffle::sparse
