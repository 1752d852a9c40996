// Nodes of a mesh over the strict library, all in one process, which aborts where the contract is
// broken. What the library does wrong is set per test.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

// Before main(), as the settings are read once.
inline const bool riffle_test_has_library = [] {
  ::setenv("RIFFLE_NET", STRICT_LIBRARY, 1);
  ::setenv("RIFFLE_COLLNET", "on", 1);
  return true;
}();

#include "plugin/transport/nccl_net/library.h"
#include "plugin/transport/nccl_net/net.h"
#include "test/plugin/transport/transport_harness.h"
#include "test/wire/strict/behaviour.h"
#include "test/wire/strict/probe.h"

namespace riffle::library_test {

inline void ignore_log(int, unsigned long, const char*, int, const char*, ...) {}

// The library as NET starts it, once per process.
inline void start_library() {
  static const bool once = [] {
    const auto library =
        nccl_net::open_library({STRICT_LIBRARY, ""}, reinterpret_cast<const void*>(&ignore_log));
    auto wire = nccl_net::find_wire<abi::NetV12>(library.value());
    void* context = nullptr;
    abi::NetCommConfig config{abi::kTrafficClassUndefined};
    nccl_net::StartArguments start{1, &config, ignore_log, nullptr};
    if (wire.value().start(start, &context) != abi::kSuccess) std::abort();
    nccl_net::set_net_in_use(*wire, ignore_log);
    return true;
  }();
  (void)once;
}

template <class F>
F* library_symbol(const char* name) {
  void* const library = ::dlopen(STRICT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F*>(::dlsym(library, name));
}
inline void behave(const strict::Behaviour& behaviour) {
  library_symbol<strict::Behave>("strict_net_behave")(behaviour);
}
inline strict::Probe probe() {
  strict::Probe p;
  library_symbol<strict::ReadProbe>("strict_net_probe")(&p);
  return p;
}
inline strict::Behaviour never(const char* function) {
  strict::Behaviour b;
  std::strncpy(b.never, function, sizeof b.never - 1);
  return b;
}

inline std::vector<std::byte> random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// Every test begins with a library that does everything right, and leaves nothing behind.
class LibraryMeshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    start_library();
    behave({});
  }
  void TearDown() override {
    behave({});
    EXPECT_TRUE(eventually([] {
      const strict::Probe p = probe();
      return p.listeners + p.sends + p.receives + p.regions == 0 && p.contexts == 1;
    })) << "connections are left";
  }
};

}  // namespace riffle::library_test
