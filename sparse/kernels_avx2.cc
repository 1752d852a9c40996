#include "sparse/kernels.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>

#include "sparse/kernels_loop.h"

namespace riffle::sparse {
namespace {

// For every mask of 8 lanes, its lanes in front, in order.
struct Lanes {
  std::uint8_t of[256][8] = {};
  constexpr Lanes() {
    for (unsigned mask = 0; mask < 256; ++mask) {
      unsigned next = 0;
      for (unsigned lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1U) != 0) of[mask][next++] = static_cast<std::uint8_t>(lane);
      }
    }
  }
};
constexpr Lanes kLanesOf;

struct Avx2 {
  static constexpr std::size_t kLanes = 8;
  using Vec = __m256;
  using Mask = unsigned;

  static __m128i load16(const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
  static Vec load_float(const char* from) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  }
  static Vec load_half(const char* from) { return _mm256_cvtph_ps(load16(from)); }
  static Vec load_bfloat(const char* from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(from)), 16));
  }
  static Mask hits(Vec v, std::uint32_t least) {  // magnitudes are positive also when signed
    const __m256i magnitude =
        _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(kMagnitudeMask));
    const __m256i below = _mm256_set1_epi32(static_cast<int>(least - 1));
    return static_cast<Mask>(
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(magnitude, below))));
  }
  static std::size_t emit(Vec v, Mask hit, std::uint32_t base, std::uint32_t* indices,
                          float* values) {
    const __m256i lanes =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLanesOf.of[hit])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(indices),
                        _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(base))));
    _mm256_storeu_ps(values, _mm256_permutevar8x32_ps(v, lanes));
    return static_cast<std::size_t>(__builtin_popcount(hit));
  }
  static Vec add(Vec v, const float* residual) {
    return _mm256_add_ps(v, _mm256_loadu_ps(residual));
  }
  static void store(float* out, Vec v) { _mm256_storeu_ps(out, v); }
  static void stream(float* out, Vec v) { _mm256_stream_ps(out, v); }
  static void end_stream() { _mm_sfence(); }
};

}  // namespace

const Kernels* avx2_kernels() { return &KernelsOf<Avx2>::kAll; }

}  // namespace riffle::sparse

#else

namespace riffle::sparse {
const Kernels* avx2_kernels() { return nullptr; }
}  // namespace riffle::sparse

#endif
