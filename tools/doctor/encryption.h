// What RIFFLE_ENCRYPT and RIFFLE_KEY_FILE would do in a job here.
#pragma once

#include <string>

#include "plugin/config/config.h"
#include "tools/doctor/verdicts.h"

namespace riffle::tools {

// False: a job would be refused, so that nothing starts.
bool check_encryption(const Config& config, Verdicts* verdicts);

// For comparing hosts: a mark that equal keys have in common and that tells nothing of them. Empty:
// no key is in use.
std::string key_mark(const Config& config);

}  // namespace riffle::tools
