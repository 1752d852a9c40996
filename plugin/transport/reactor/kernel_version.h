// The running kernel's version, for what older ones do wrong.
#pragma once

#include <optional>
#include <string_view>

namespace riffle {

struct KernelVersion {
  int major = 0, minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
// Of uname's release, e.g. "5.4.0-150-generic".
std::optional<KernelVersion> kernel_version_of(std::string_view release);

// SO_RCVLOWAT with segments that fill the receive buffer before that many bytes are there: before
// Linux 5.8 nothing ever wakes the reader. Where the version is not known, it counts as older.
bool kernel_wakes_at_low_water();

}  // namespace riffle
