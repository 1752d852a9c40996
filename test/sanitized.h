// Whether a test runs under a sanitizer: ten times as slow, and without one it runs again.
#pragma once

namespace riffle {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// The cases of one kind that a test goes through: a tenth of them where each takes so long.
constexpr int cases(int number) { return kIsSanitized ? (number + 9) / 10 : number; }

}  // namespace riffle
