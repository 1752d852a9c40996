#include "plugin/transport/crypto/key_exchange.h"

namespace riffle {

Locked<KeyPair> KeyPair::of(const Key& secret) {
  Locked<KeyPair> pair = make_locked<KeyPair>();
  pair->secret_ = secret;
  (void)crypto_scalarmult_base(pair->public_.data(), pair->secret_.data());
  return pair;
}

Locked<KeyPair> KeyPair::make() {
  Key secret;
  fill_random(secret.data(), secret.size());
  Locked<KeyPair> pair = of(secret);
  sodium_memzero(secret.data(), secret.size());
  return pair;
}

Status KeyPair::agree(const PublicKey& of_peer, Key* shared) const {
  if (crypto_scalarmult(shared->data(), secret_.data(), of_peer.data()) == 0) return Status::ok();
  return remote_error("its public key is of small order, which no honest peer sends");
}

Locked<LinkSecrets> derive_secrets(ByteView proof_key, const Key& shared,
                                   std::initializer_list<ByteView> transcript) {
  // Digested first: the label of derive_key() fixes the number of its parts, not this list's.
  crypto_generichash_state state;
  Key said;
  crypto_generichash_init(&state, nullptr, 0, said.size());
  for (const ByteView part : transcript) {
    crypto_generichash_update(&state, part.data(), part.size());
  }
  crypto_generichash_final(&state, said.data(), said.size());
  Key root;
  derive_key(proof_key, "riffle link", {shared, said}, &root);
  Locked<LinkSecrets> secrets = make_locked<LinkSecrets>();
  derive_key(root, "listener's proof", {}, &secrets->listener_proof);
  derive_key(root, "to the listener", {}, &secrets->to_listener);
  derive_key(root, "from the listener", {}, &secrets->from_listener);
  sodium_memzero(root.data(), root.size());
  return secrets;
}

}  // namespace riffle
