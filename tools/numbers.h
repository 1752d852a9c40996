// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "topology/base/printed.h"

namespace riffle::tools {

inline std::string rate_text(double mbps) {
  if (mbps >= 999'500) return printed("%.3g Tbit/s", mbps / 1'000'000);
  if (mbps >= 999.5) return printed("%.3g Gbit/s", mbps / 1000);
  return printed(mbps < 10 ? "%.1f Mbit/s" : "%.0f Mbit/s", mbps);
}

inline std::string bytes_text(std::uint64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (bytes < (1ULL << 10)) return printed("%.0f B", b);
  if (bytes < (1ULL << 20)) return printed("%.4g KiB", b / (1ULL << 10));
  if (bytes < (1ULL << 30)) return printed("%.4g MiB", b / (1ULL << 20));
  return printed("%.4g GiB", b / (1ULL << 30));
}

inline std::string us_text(double us) {
  if (us < 1e4) return printed("%.0f us", us);
  if (us < 1e7) return printed("%.1f ms", us / 1e3);
  return printed("%.1f s", us / 1e6);
}

inline std::string counted(std::size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

inline std::string seconds_text(double s) {
  return s < 10 ? us_text(s * 1e6) : printed("%.1f s", s);
}

}  // namespace riffle::tools
