// X25519 between the two ends of one connection, with pairs that are made for it and gone when it
// stands: what was recorded stays closed, whatever key is stolen later. By itself it shows no end
// who the other one is; the handshake's proofs do (handshake/handshake.h), and the keys depend on
// them.
#pragma once

#include "plugin/transport/crypto/keys.h"
#include "plugin/transport/crypto/locked.h"
#include "plugin/transport/crypto/record_cipher.h"
#include "topology/base/status.h"

namespace riffle {

class KeyPair {
 public:
  static Locked<KeyPair> make();                 // fresh
  static Locked<KeyPair> of(const Key& secret);  // for tests
  const PublicKey& public_key() const { return public_; }
  // The number that only these two ends know. Refuses a peer's key that would make it guessable.
  Status agree(const PublicKey& of_peer, Key* shared) const;

 private:
  Key secret_{};
  PublicKey public_{};
};

// What comes of a handshake, on both ends alike.
struct LinkSecrets {
  Key listener_proof;              // the listener shows with it that it got this far
  Key to_listener, from_listener;  // RecordCipher's chains
};

// `proof_key` is what both ends knew before, `shared` what they agreed on, `transcript` all that
// they have said, in order: where a byte of it was changed, the keys differ.
Locked<LinkSecrets> derive_secrets(ByteView proof_key, const Key& shared,
                                   std::initializer_list<ByteView> transcript);

}  // namespace riffle
