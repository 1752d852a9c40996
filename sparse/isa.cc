#include "sparse/isa.h"

#include "sparse/kernels.h"

namespace riffle::sparse {

bool is_available(Isa isa) {
  if (isa == Isa::kPortable) return true;
#if defined(__x86_64__)
  // Both kernels are built with it; no processor with AVX2 lacks it.
  if (!__builtin_cpu_supports("popcnt") || !processor_has(isa)) return false;
  return (isa == Isa::kAvx2 ? avx2_kernels() : avx512_kernels()) != nullptr;
#else
  return false;
#endif
}

Isa best_isa() {
  static const Isa best = is_available(Isa::kAvx512) ? Isa::kAvx512
                          : is_available(Isa::kAvx2) ? Isa::kAvx2
                                                     : Isa::kPortable;
  return best;
}

}  // namespace riffle::sparse
