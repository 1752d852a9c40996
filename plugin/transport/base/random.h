// libsodium, and its numbers that cannot be guessed. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle {

// Before the first use of libsodium, which looks then at what the processor can do. Again:
// harmless.
void start_sodium();

void fill_random(void* data, std::size_t size);
std::uint64_t random_u64();

}  // namespace riffle
