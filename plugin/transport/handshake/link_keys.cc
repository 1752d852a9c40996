#include "plugin/transport/handshake/link_keys.h"

#include <utility>

namespace riffle {
namespace {

// Of both directions; `out` and `in` are this end's.
StreamKeysPtr start(Cipher cipher, const Key& out, const Key& in) {
  StreamKeysPtr keys = make_locked<StreamKeys>();
  keys->out.start(cipher, out);
  keys->in.start(cipher, in);
  return keys;
}

Result<Locked<LinkSecrets>> agree(const Credentials& own, const KeyPair& pair,
                                  const PublicKey& of_peer, const ChallengeBytes& challenge,
                                  const HelloBytes& hello, const Welcome& welcome) {
  Key shared;
  Status agreed = pair.agree(of_peer, &shared);
  if (!agreed) return agreed;
  Locked<LinkSecrets> secrets =
      derive_secrets(own.proof_key(), shared, {challenge, hello, head_of(welcome)});
  sodium_memzero(shared.data(), shared.size());
  return secrets;
}

}  // namespace

Locked<KeyPair> add_key(const Credentials& own, Hello* hello) {
  if (!own.encrypts()) return nullptr;
  Locked<KeyPair> pair = KeyPair::make();
  hello->ciphers = own.offer().ciphers;
  hello->key = pair->public_key();
  return pair;
}

Result<Answer> answer(const Credentials& own, const ChallengeBytes& challenge,
                      const HelloBytes& bytes, const Hello& hello) {
  if (!own.encrypts()) return Answer{make_welcome(bytes, own.proof_key()), nullptr};
  const Locked<KeyPair> pair = KeyPair::make();
  const Welcome welcome = {choose_cipher(own.offer().ciphers, hello.ciphers), pair->public_key()};
  if (welcome.cipher == Cipher::kNone) return remote_error("it has none of this node's ciphers");
  const auto secrets = agree(own, *pair, hello.key, challenge, bytes, welcome);
  if (!secrets) return secrets.status();
  const LinkSecrets& s = **secrets;
  return Answer{make_welcome(bytes, s.listener_proof, welcome),
                start(welcome.cipher, s.from_listener, s.to_listener)};
}

Result<StreamKeysPtr> open_welcome(const Credentials& own, const ChallengeBytes& challenge,
                                   const HelloBytes& hello, const KeyPair* pair,
                                   const WelcomeBytes& bytes) {
  if (!own.encrypts()) {
    if (Status s = check_welcome(bytes, hello, own.proof_key()); !s) return s;
    return StreamKeysPtr();
  }
  const Welcome welcome = claim_of(bytes);
  const auto secrets = agree(own, *pair, welcome.key, challenge, hello, welcome);
  if (!secrets) return secrets.status();
  const LinkSecrets& s = **secrets;
  if (Status proved = check_welcome(bytes, hello, s.listener_proof); !proved) return proved;
  const Cipher best = choose_cipher(own.offer().ciphers, ciphers_of(challenge));
  if (welcome.cipher != best || best == Cipher::kNone) {
    return remote_error("it chose a cipher that is not the best of both sides'");
  }
  return start(welcome.cipher, s.to_listener, s.from_listener);
}

}  // namespace riffle
