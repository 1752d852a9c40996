#include "plugin/entry/encryption.h"

#include "plugin/transport/crypto/key_file.h"

namespace riffle {

Result<EncryptionOptions> encryption_options(const Config& c) {
  EncryptionOptions options;
  options.is_on = c.encrypt;
  if (c.key_file.empty()) return options;
  if (!c.encrypt) {
    return invalid_argument("RIFFLE_KEY_FILE=" + c.key_file +
                            " has no use without RIFFLE_ENCRYPT=1: set both or none");
  }
  auto key = read_key_file(c.key_file);
  if (!key) return key.status();
  options.key = std::move(*key);
  return options;
}

Status refusal_of(const Options& options, const std::vector<std::string>& problems) {
  if (!options.refusal) return options.refusal;
  for (const std::string& problem : problems) {
    // Misspelt ones too, and lines of files that are no settings.
    const auto says = [&](const char* text) { return problem.find(text) != std::string::npos; };
    if (says("RIFFLE_ENCRYPT") || says("RIFFLE_KEY")) return invalid_argument(problem);
  }
  if (!options.transport.encryption.is_on) return Status::ok();
  const std::string remedy = " is not encrypted; RIFFLE_NET=tcp carries all over Riffle's TCP";
  if (!options.wire.name.empty()) {
    return invalid_argument("RIFFLE_ENCRYPT=1 does not go with RIFFLE_NET=" + options.wire.name +
                            ": what that library carries" + remedy);
  }
  if (options.rdma.is_left_to_nccl) {
    return invalid_argument(
        "RIFFLE_ENCRYPT=1 does not go with RIFFLE_NET=auto on a machine with an RDMA port: NCCL's "
        "own InfiniBand transport" +
        remedy);
  }
  return Status::ok();
}

}  // namespace riffle
