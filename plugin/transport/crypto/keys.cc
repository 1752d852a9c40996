#include "plugin/transport/crypto/keys.h"

#include <sodium.h>

namespace riffle {

static_assert(kKeyBytes == crypto_generichash_BYTES && kKeyBytes == crypto_scalarmult_BYTES);

void derive_key(ByteView key, std::string_view label, std::initializer_list<ByteView> parts,
                Key* result) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), result->size());
  // With its length, so that no label and part together look like another label.
  const auto length = static_cast<std::uint8_t>(label.size());
  crypto_generichash_update(&state, &length, 1);
  crypto_generichash_update(&state, reinterpret_cast<const std::uint8_t*>(label.data()),
                            label.size());
  for (const ByteView part : parts) crypto_generichash_update(&state, part.data(), part.size());
  crypto_generichash_final(&state, result->data(), result->size());
  sodium_memzero(&state, sizeof state);
}

}  // namespace riffle
