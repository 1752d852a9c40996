// The last step of the handshake where frames are encrypted: both ends come to the same keys for
// one stream. Without encryption there are no keys, and the stream is plain. Reactor
// thread; takes some 0.1 ms of it.
#pragma once

#include "plugin/transport/crypto/key_exchange.h"
#include "plugin/transport/crypto/record_cipher.h"
#include "plugin/transport/handshake/connection.h"
#include "plugin/transport/handshake/handshake.h"

namespace riffle {

// The connector's part of a key, put into its HELLO; null without encryption.
Locked<KeyPair> add_key(const Credentials& own, Hello* hello);

// Listener: the answer to an authentic HELLO, and the keys that hold behind it.
struct Answer {
  WelcomeBytes welcome;
  StreamKeysPtr keys;
};
Result<Answer> answer(const Credentials& own, const ChallengeBytes& challenge,
                      const HelloBytes& bytes, const Hello& hello);

// Connector: the keys, if the listener proved that it has them too.
Result<StreamKeysPtr> open_welcome(const Credentials& own, const ChallengeBytes& challenge,
                                   const HelloBytes& hello, const KeyPair* pair,
                                   const WelcomeBytes& welcome);

}  // namespace riffle
