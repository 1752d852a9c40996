// The shared object with the fake services, loaded as NCCL loads a plugin.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugin/abi/collnet.h"
#include "plugin/abi/net.h"
#include "plugin/abi/tuner.h"
#include "test/abi/fake_services.h"

namespace riffle {

// The symbol of each table type.
template <class Table>
inline constexpr const char* kSymbol = nullptr;
#define RIFFLE_SYMBOL(type, name) \
  template <>                     \
  inline constexpr const char* kSymbol<abi::type> = name;
#define RIFFLE_SYMBOLS(version)                            \
  RIFFLE_SYMBOL(NetV##version, "ncclNetPlugin_v" #version) \
  RIFFLE_SYMBOL(CollNetV##version, "ncclCollNetPlugin_v" #version)
RIFFLE_SYMBOLS(5)
RIFFLE_SYMBOLS(6)
RIFFLE_SYMBOLS(7)
RIFFLE_SYMBOLS(8)
RIFFLE_SYMBOLS(9)
RIFFLE_SYMBOLS(10)
RIFFLE_SYMBOLS(11)
RIFFLE_SYMBOLS(12)
RIFFLE_SYMBOL(TunerV1, "ncclTunerPlugin_v1")
RIFFLE_SYMBOL(TunerV2, "ncclTunerPlugin_v2")
RIFFLE_SYMBOL(TunerV3, "ncclTunerPlugin_v3")
RIFFLE_SYMBOL(TunerV4, "ncclTunerPlugin_v4")
RIFFLE_SYMBOL(TunerV5, "ncclTunerPlugin_v5")
RIFFLE_SYMBOL(TunerV6, "ncclTunerPlugin_v6")
#undef RIFFLE_SYMBOLS
#undef RIFFLE_SYMBOL

using NetTables = ::testing::Types<abi::NetV5, abi::NetV6, abi::NetV7, abi::NetV8, abi::NetV9,
                                   abi::NetV10, abi::NetV11, abi::NetV12>;
using CollNetTables =
    ::testing::Types<abi::CollNetV5, abi::CollNetV6, abi::CollNetV7, abi::CollNetV8, abi::CollNetV9,
                     abi::CollNetV10, abi::CollNetV11, abi::CollNetV12>;
using TunerTables = ::testing::Types<abi::TunerV1, abi::TunerV2, abi::TunerV3, abi::TunerV4,
                                     abi::TunerV5, abi::TunerV6>;

class FakePlugin {
 public:
  static FakePlugin& get() {
    static FakePlugin plugin;
    return plugin;
  }

  template <class Table>
  const Table& table() {
    return *symbol<const Table>(kSymbol<Table>);
  }

  void fail(Failure how) { symbol<FakeFail>("fake_fail")(how); }

  // The service calls and the log lines since the last time.
  std::string take_calls() {
    static std::array<char, 1 << 20> text;
    symbol<FakeTakeCalls>("fake_take_calls")(text.data(), text.size());
    return text.data();
  }
  std::vector<std::string> take_lines() { return std::exchange(lines(), {}); }  // warnings
  std::vector<std::string> take_infos() { return std::exchange(infos(), {}); }

  static void logger(int level, unsigned long, const char*, int, const char* format, ...) {
    std::array<char, 1024> text;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    (level == 2 ? lines() : infos()).emplace_back(text.data());
  }

 private:
  FakePlugin() {
    ::setenv("RIFFLE_NET", "tcp", 0);  // also where the machine of the tests has InfiniBand
    const char* path = std::getenv("FAKE_PLUGIN_LIBRARY");
    library_ = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      std::fprintf(stderr, "FAKE_PLUGIN_LIBRARY=%s: %s\n", path == nullptr ? "" : path,
                   ::dlerror());
      std::abort();
    }
  }

  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  static std::vector<std::string>& infos() {
    static std::vector<std::string> all;
    return all;
  }

  template <class T>
  T* symbol(const char* name) {
    void* found = ::dlsym(library_, name);
    if (found == nullptr) {
      std::fprintf(stderr, "no symbol %s\n", name);
      std::abort();
    }
    return reinterpret_cast<T*>(found);
  }

  void* library_ = nullptr;
};

// Every test starts with healthy services and nothing recorded.
class FakePluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    plugin.fail(kFailNot);
    plugin.take_calls();
    plugin.take_lines();
    plugin.take_infos();
  }
  void TearDown() override { plugin.fail(kFailNot); }

  FakePlugin& plugin = FakePlugin::get();
};

// Settings are read once per process, so every case starts one of its own (EXPECT_EXIT).
class FreshProcessTest : public FakePluginTest {
 protected:
  void SetUp() override {
    FakePluginTest::SetUp();
    if (std::getenv("RIFFLE_TEST_EMULATED") != nullptr) {
      GTEST_SKIP() << "a program under qemu-user cannot start itself anew";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

}  // namespace riffle
