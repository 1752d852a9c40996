// Numbers that cannot be guessed (libsodium's generator). Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle {

void fill_random(void* data, std::size_t size);
std::uint64_t random_u64();

}  // namespace riffle
