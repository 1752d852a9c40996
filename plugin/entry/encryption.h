// RIFFLE_ENCRYPT at the border: its options, and what makes that it cannot be kept. A process that
// is to encrypt never goes on without: its NET then refuses the job (net_tables.cc).
#pragma once

#include <string>
#include <vector>

#include "plugin/config/config.h"
#include "plugin/entry/options.h"

namespace riffle {

// Reads the key file. An error where that does not work, or where a key has no use.
Result<EncryptionOptions> encryption_options(const Config& config);

// Why `options` are not to be put in force: its own refusal; a setting of encryption among the
// `problems` of config(), for which a default holds that is not what was wanted; or a network that
// is not Riffle's.
Status refusal_of(const Options& options, const std::vector<std::string>& problems);

}  // namespace riffle
