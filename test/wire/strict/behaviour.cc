#include "test/wire/strict/behaviour.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace strict {
namespace {

int number(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

}  // namespace

Behaviour read_behaviour() {
  Behaviour b;
  b.slow = number("STRICT_NET_SLOW", b.slow);
  b.fail_at = number("STRICT_NET_FAIL_AT", b.fail_at);
  b.lie = number("STRICT_NET_LIE", b.lie);
  b.requests = number("STRICT_NET_REQUESTS", b.requests);
  b.devices = number("STRICT_NET_DEVICES", b.devices);
  b.init_result = number("STRICT_NET_INIT", b.init_result);
  b.refuse_mr = number("STRICT_NET_REFUSE_MR", b.refuse_mr);
  b.seed = number("STRICT_NET_SEED", b.seed);
  b.meets = number("STRICT_NET_MEETS", 0) != 0;
  if (const char* const never = std::getenv("STRICT_NET_NEVER")) {
    std::strncpy(b.never, never, sizeof b.never - 1);
  }
  b.offload = number("STRICT_NET_OFFLOAD", 0) != 0;
  b.waits = number("STRICT_NET_WAITS", 0) != 0;
  b.is_mute = number("STRICT_NET_MUTE", 0) != 0;
  if (const char* const interface = std::getenv("STRICT_NET_INTERFACE")) b.interface = interface;
  return b;
}

bool lacks(const char* function) {
  const char* const value = std::getenv("STRICT_NET_LACKS");
  return value != nullptr && std::strcmp(value, function) == 0;
}

void violation(const std::string& what) {
  std::fprintf(stderr, "strict plugin: %s\n", what.c_str());
  std::abort();
}

}  // namespace strict
