#include "topology/base/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace riffle {
namespace {

#if defined(__x86_64__)
// By the instructions themselves: what __builtin_cpu_supports reads is in GCC's runtime library,
// but not in that of every compiler.
struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros where the processor has no such leaf.
Registers cpuid(unsigned leaf) {
  Registers r;
  __get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

constexpr bool has_all(unsigned value, unsigned bits) { return (value & bits) == bits; }

// What the system saves of a thread's registers (XCR0).
constexpr unsigned kYmm = 0x06, kZmm = 0xe6;

bool system_saves(unsigned registers) {
  if (!has_all(cpuid(1).ecx, bit_OSXSAVE)) return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has_all(low, registers);
}

bool has_avx2() {
  return has_all(cpuid(1).ecx, bit_F16C | bit_POPCNT) && has_all(cpuid(7).ebx, bit_AVX2) &&
         system_saves(kYmm);
}

bool has_avx512() {
  constexpr unsigned kParts = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  return has_avx2() && has_all(cpuid(7).ebx, kParts) && system_saves(kZmm);
}
#endif

}  // namespace

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kNeon:
      return "neon";
  }
  return "unknown";
}

bool processor_has(Isa isa) {
#if defined(__x86_64__)
  // Kept: under a hypervisor cpuid takes microseconds.
  static const bool avx2 = has_avx2(), avx512 = has_avx512();
  switch (isa) {
    case Isa::kPortable:
      return true;
    case Isa::kAvx2:
      return avx2;
    case Isa::kAvx512:
      return avx512;
    case Isa::kNeon:
      return false;
  }
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0;
#endif
  return isa == Isa::kPortable;
}

}  // namespace riffle
