#include "sparse/isa.h"

#include "sparse/kernels.h"

namespace riffle::sparse {

bool is_available(Isa isa) {
  if (isa == Isa::kPortable) return true;
#if defined(__x86_64__)
  if (!processor_has(isa)) return false;
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
