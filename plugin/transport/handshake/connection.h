// A connection that stands: both ends have proved themselves, and have keys for it where frames are
// encrypted.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "plugin/transport/crypto/locked.h"
#include "plugin/transport/crypto/record_cipher.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {

using StreamKeysPtr = Locked<StreamKeys>;  // null: the stream is plain

// What both ends have of their handshake, and no other connection has.
using LinkMark = std::array<std::uint8_t, 16>;

struct Connection {
  Connection() = default;
  Connection(Fd connected, StreamKeysPtr its_keys = nullptr)  // NOLINT: implicit on purpose
      : socket(std::move(connected)), keys(std::move(its_keys)) {}
  Fd socket;
  StreamKeysPtr keys;
  LinkMark mark{};
};

}  // namespace riffle
