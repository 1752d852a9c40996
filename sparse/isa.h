// Instruction sets of the selection kernels, chosen at run time.
#pragma once

namespace riffle::sparse {

enum class Isa { kPortable, kAvx2, kAvx512 };
inline constexpr Isa kIsas[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512};

// Whether this processor has it and the library was built with it.
bool is_available(Isa isa);
// The best available; any thread, the same answer every time.
Isa best_isa();
const char* name_of(Isa isa);

}  // namespace riffle::sparse
