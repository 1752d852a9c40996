// The sizes of what encryption works with, and the one hash that makes keys of keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace riffle {

inline constexpr std::size_t kKeyBytes = 32;
using Key = std::array<std::uint8_t, kKeyBytes>;
using PublicKey = std::array<std::uint8_t, kKeyBytes>;  // X25519
using ByteView = std::span<const std::uint8_t>;

// BLAKE2b-256 under `key` of `label`, which says what the result is for, and of `parts`, whose
// sizes the label fixes. Wipe what `result` held when it was a key.
void derive_key(ByteView key, std::string_view label, std::initializer_list<ByteView> parts,
                Key* result);

}  // namespace riffle
