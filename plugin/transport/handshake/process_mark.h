// By which peers know that two listeners belong to one process: the first 40 bits of their nonces
// (the communicator of a handle) are the process's, drawn at random; the rest counts. A process
// that draws the same ones is no danger: it knows no secret of the communicators that are not its
// own. After a fork the child has others. Any thread.
#pragma once

#include <cstdint>

namespace riffle {

std::uint64_t next_nonce();
constexpr std::uint64_t process_of(std::uint64_t nonce) { return nonce >> 24; }

}  // namespace riffle
