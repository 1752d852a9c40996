// ENV: the tables v1 and v2. getEnv returns null for "unset" and must be reentrant.
#pragma once

#include <cstdint>

#include "plugin/abi/common.h"

namespace riffle::abi {

struct EnvV1 {  // 32
  const char* name;
  NcclResult (*init)(std::uint8_t major, std::uint8_t minor, std::uint8_t patch,
                     const char* suffix);
  NcclResult (*finalize)();
  const char* (*getEnv)(const char* name);
};

struct EnvV2 {  // 32: + logger
  const char* name;
  NcclResult (*init)(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char* suffix,
                     LogFn);
  NcclResult (*finalize)();
  const char* (*getEnv)(const char* name);
};

}  // namespace riffle::abi
