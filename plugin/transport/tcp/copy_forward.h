// Copies in increasing order of addresses by aligned words. NCCL's low-latency protocols poll
// memory while it fills: a flag must not become visible before the data in front of it, which
// memcpy does not promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace riffle {

inline void copy_forward(std::byte* to, const std::byte* from, std::size_t size) {
  const auto step = [&](auto word) {
    std::memcpy(&word, from, sizeof word);
    *reinterpret_cast<volatile decltype(word)*>(to) = word;
    to += sizeof word, from += sizeof word, size -= sizeof word;
  };
  while (size > 0 && reinterpret_cast<std::uintptr_t>(to) % 8 != 0) step(std::uint8_t{});
  while (size >= 8) step(std::uint64_t{});
  while (size > 0) step(std::uint8_t{});
}

}  // namespace riffle
