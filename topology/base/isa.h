// Instruction sets that kernels are built for and that one of is chosen from at run time. Every
// library that has such kernels says for itself which of them it was built with.
#pragma once

namespace riffle {

enum class Isa { kPortable, kAvx2, kAvx512, kNeon };
inline constexpr Isa kIsas[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kNeon};

const char* name_of(Isa isa);
// AVX2 with F16C and POPCNT; AVX-512 with F, BW, DQ and VL besides. Any thread.
bool processor_has(Isa isa);

}  // namespace riffle
