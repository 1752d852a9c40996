#include "tools/doctor/encryption.h"

#include <array>
#include <cstdio>

#include "plugin/entry/encryption.h"
#include "plugin/entry/transport_options.h"
#include "plugin/transport/crypto/cipher.h"
#include "plugin/transport/crypto/key_file.h"

namespace riffle::tools {

bool check_encryption(const Config& c, Verdicts* verdicts) {
  Options options = options_from(c);
  if (options.wire.name.empty()) options.rdma = find_rdma(rdma_choice(c));
  const Status refusal = refusal_of(options, config_problems());
  if (!refusal) {
    verdicts->problem(refusal.message(), "as said there; until then a job ends when it starts");
    return false;
  }
  if (!c.encrypt) return true;
  const Cipher best = choose_cipher(own_ciphers(), own_ciphers());
  verdicts->good(std::string("RIFFLE_ENCRYPT=1: ") + cipher_name(best) +
                 " between nodes like this" +
                 (c.key_file.empty() ? "" : ", with the key of RIFFLE_KEY_FILE"));
  if (c.key_file.empty()) {
    verdicts->note(
        "without RIFFLE_KEY_FILE what can read NCCL's bootstrap and change packets can still join "
        "the job");
  }
  return true;
}

std::string key_mark(const Config& c) {
  if (!c.encrypt || c.key_file.empty()) return "";
  const auto key = read_key_file(c.key_file);
  if (!key) return "none that can be read";
  Key mark;
  derive_key((*key)->bytes(), "mark of a key", {}, &mark);
  std::array<char, 9> text;
  std::snprintf(text.data(), text.size(), "%02x%02x%02x%02x", mark[0], mark[1], mark[2], mark[3]);
  return text.data();
}

}  // namespace riffle::tools
