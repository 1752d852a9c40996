// Bytes as test vectors print them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

inline std::vector<std::byte> bytes_of_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  }
  return bytes;
}

inline std::string hex_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::byte b : bytes) {
    hex += kDigits[std::to_integer<std::size_t>(b) >> 4];
    hex += kDigits[std::to_integer<std::size_t>(b) & 15];
  }
  return hex;
}

// An array of keys or nonces.
template <class Array>
Array array_of_hex(std::string_view hex) {
  Array array{};
  const std::vector<std::byte> bytes = bytes_of_hex(hex);
  for (std::size_t i = 0; i < array.size() && i < bytes.size(); ++i) {
    array[i] = std::to_integer<typename Array::value_type>(bytes[i]);
  }
  return array;
}

}  // namespace riffle
