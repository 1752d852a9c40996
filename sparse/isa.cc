#include "sparse/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "sparse/kernels.h"

namespace riffle::sparse {
namespace {

#if defined(__x86_64__)
// Not every compiler's __builtin_cpu_supports knows this one.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

bool is_available(Isa isa) {
  if (isa == Isa::kPortable) return true;
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) {
    return avx2_kernels() != nullptr && __builtin_cpu_supports("avx2") && has_f16c();
  }
  return avx512_kernels() != nullptr && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");
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

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace riffle::sparse
