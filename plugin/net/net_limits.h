// Numbers that both ends of a NET connection rely on.
#pragma once

#include <cstddef>

#include "plugin/net/net_service.h"

namespace riffle::net {

// Receives that may be announced and not complete at one time.
inline constexpr std::size_t kMaxPosted = std::size_t{kMaxRequests} * kMaxGroupedRecvs;
// Messages travel in pieces of RIFFLE_PIECE_BYTES; large ones in larger pieces up to this.
inline constexpr std::size_t kMaxPieceBytes = 512 << 10;

}  // namespace riffle::net
