// What the knobs say about NET's connections alone.
#pragma once

#include <cstddef>

namespace riffle {

struct NetOptions {
  std::size_t piece_bytes = 128 << 10;  // a message's frames, at least
};

}  // namespace riffle
