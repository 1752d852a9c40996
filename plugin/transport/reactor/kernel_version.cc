#include "plugin/transport/reactor/kernel_version.h"

#include <sys/utsname.h>

#include <charconv>

namespace riffle {

std::optional<KernelVersion> kernel_version_of(std::string_view release) {
  KernelVersion version;
  const char* const end = release.data() + release.size();
  const auto major = std::from_chars(release.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc()) return std::nullopt;
  return version;
}

bool kernel_wakes_at_low_water() {
  static const bool does = [] {
    constexpr KernelVersion kCorrected{5, 8};
    utsname names{};
    if (::uname(&names) != 0) return false;
    return kernel_version_of(names.release).value_or(KernelVersion()) >= kCorrected;
  }();
  return does;
}

}  // namespace riffle
