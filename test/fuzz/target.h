// What a fuzz target provides; driver.cc runs it with seeded random inputs, libFuzzer
// (-DRIFFLE_FUZZ=ON, clang) with inputs it breeds.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace riffle::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Well-formed inputs to start from; at least one.
std::vector<Bytes> seeds();

// Throws where the code under test breaks its contract for this input.
void try_input(std::span<const std::uint8_t> input);

inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace riffle::fuzz
