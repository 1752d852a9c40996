// ENV: answers exactly as NCCL's built-in provider. It is exported so that NCCL_ENV_PLUGIN=riffle
// is harmless; the library never decides NCCL's own settings.
#include "plugin/abi/env.h"

#include <cstdint>
#include <cstdlib>

#include "plugin/entry/border.h"

namespace riffle::entry::env {
namespace {

abi::NcclResult init(std::uint8_t, std::uint8_t, std::uint8_t, const char*) {
  return abi::kSuccess;
}

abi::NcclResult init(std::uint8_t, std::uint8_t, std::uint8_t, const char*, abi::LogFn log) {
  return guard("env init", [&] {
    start_log(log);
    return Status::ok();
  });
}

abi::NcclResult finalize() { return abi::kSuccess; }

const char* get_env(const char* name) { return std::getenv(name); }

template <class Table>
constexpr Table make_table() {
  Table table{};
  table.name = kPluginName;
  table.init = init;
  table.finalize = finalize;
  table.getEnv = get_env;
  return table;
}

}  // namespace
}  // namespace riffle::entry::env

RIFFLE_TABLE riffle::abi::EnvV1 ncclEnvPlugin_v1 =
    riffle::entry::env::make_table<riffle::abi::EnvV1>();
RIFFLE_TABLE riffle::abi::EnvV2 ncclEnvPlugin_v2 =
    riffle::entry::env::make_table<riffle::abi::EnvV2>();
