// Little-endian numbers in byte arrays: the one way that anything is laid out on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace riffle {

template <class T>
void put(std::uint8_t* at, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    at[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

template <class T>
T get(const std::uint8_t* at) {
  static_assert(std::is_unsigned_v<T>);
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(at[i]) << (8 * i));
  }
  return value;
}

// Several, one behind the other.
template <class... T>
void put_fields(std::uint8_t* at, T... values) {
  ((put(at, values), at += sizeof(T)), ...);
}
template <class... T>
void get_fields(const std::uint8_t* at, T&... values) {
  ((values = get<T>(at), at += sizeof(T)), ...);
}

}  // namespace riffle
