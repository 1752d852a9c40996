// What the tests of a library as NET share: a process of its own for every case, as a process keeps
// what its first init found; the plugin that ships, over a strict library; what the library saw.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lab/nccl_host/tables/plugin_library.h"
#include "plugin/abi/constants.h"
#include "plugin/transport/nccl_net/versions.h"
#include "test/wire/strict/probe.h"

namespace riffle::wire {

using Settings = std::map<std::string, std::string>;

inline std::string strict_library(const std::string& name) {
  return std::string(STRICT_LIBRARIES) + "/libnccl-net-" + name + ".so";
}
inline std::string strict_library(int version) {
  return strict_library("strict" + std::to_string(version));
}

// Every test runs its body so: the settings are in force before the process starts.
template <class Body>
void in_process(const Settings& settings, Body&& body) {
  if (std::getenv("RIFFLE_TEST_EMULATED") != nullptr) {
    GTEST_SKIP() << "a program under qemu-user cannot start itself anew";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto& [name, value] : settings) ::setenv(name.c_str(), value.c_str(), 1);
  const auto run = [&] {
    body();
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  for (const auto& [name, value] : settings) ::unsetenv(name.c_str());
}

// -- log lines

struct Line {
  int level;  // 2 is a warning
  std::string text;
};

// Threads of the plugin log as well, also while the process exits: never destroyed.
class Lines {
 public:
  void add(int level, const char* text) {
    const std::lock_guard lock(mutex_);
    all_.push_back({level, text});
  }
  std::vector<Line> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Line> all_;
};

inline Lines& lines() {
  static Lines& lines = *new Lines;
  return lines;
}

inline void logger(int level, unsigned long, const char*, int, const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  // On a busy machine it may be slow, whatever the test is about
  // (transport/device/machine_reading.h).
  if (std::strstr(text, "hwloc did not tell of it") != nullptr) return;
  lines().add(level, text);
}

// How many lines of the level contain the text.
inline int count_lines(int level, const std::string& part) {
  int count = 0;
  for (const Line& line : lines().all()) {
    count += line.level == level && line.text.find(part) != std::string::npos ? 1 : 0;
  }
  return count;
}

inline std::string all_lines() {
  std::string all;
  for (const Line& line : lines().all())
    all += std::to_string(line.level) + ": " + line.text + "\n";
  return all;
}

// -- the plugin that ships, and the library under it

inline void* loaded(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::abort();
  }
  return library;
}

template <class T>
T* symbol(void* library, const std::string& name) {
  void* const found = ::dlsym(library, name.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "no symbol %s\n", name.c_str());
    std::abort();
  }
  return reinterpret_cast<T*>(found);
}

template <class Table>
Table& plugin_table() {
  return *symbol<Table>(loaded(RIFFLE_PLUGIN_PATH),
                        "ncclNetPlugin_v" + std::to_string(nccl_net::kVersion<Table>));
}

inline strict::Probe probe(const std::string& library) {
  strict::Probe p;
  symbol<strict::ReadProbe>(loaded(library), "strict_net_probe")(&p);
  return p;
}

// The shipped table of one version, whatever that is (6 to 12).
inline std::shared_ptr<host::PluginLibrary> plugin(int version) {
  auto library = host::PluginLibrary::load(RIFFLE_PLUGIN_PATH, {version, 0, 0, 0});
  if (!library) {
    std::fprintf(stderr, "%s\n", library.status().message().c_str());
    std::abort();
  }
  return *library;
}

// -- init of any version, by its parameter list

template <class Table>
int init(const Table& t, void** context, std::uint64_t comm_id = 7, int traffic_class = -1) {
  if constexpr (nccl_net::kVersion<Table> >= 11) {
    abi::NetCommConfig config{traffic_class};
    return t.init(context, comm_id, &config, logger, nullptr);
  } else if constexpr (nccl_net::kVersion<Table> == 10) {
    return t.init(logger, nullptr);
  } else {
    return t.init(logger);
  }
}

template <class Table>
int finalize(const Table& t, void* context) {
  if constexpr (nccl_net::kVersion<Table> >= 11) return t.finalize(context);
  return 0;
}

// Calls use.operator()<Table>() for every version of NCCL's table from `first` on.
template <class Use>
void for_tables_from(int first, Use&& use) {
  nccl_net::use_newest([&]<class Table>() {
    if (nccl_net::kVersion<Table> >= first) use.template operator()<Table>();
    return false;
  });
}

// -- two connections that face each other

struct Pair {
  std::shared_ptr<host::PluginLibrary> library;
  host::NetTable& net;
  void *context = nullptr, *listener = nullptr, *send = nullptr, *recv = nullptr;
  char handle[host::kHandleBytes] = {};

  explicit Pair(int version) : library(plugin(version)), net(library->net()) {}

  void open(std::uint64_t comm_id = 7, int device = 0) {
    ASSERT_EQ(net.init(comm_id, &context), 0);
    open_only(device);
  }
  void open_only(int device = 0) {
    ASSERT_EQ(net.listen(context, device, handle, &listener), 0);
    for (int tries = 0; send == nullptr || recv == nullptr; ++tries) {
      ASSERT_LT(tries, 1000);
      ASSERT_EQ(send != nullptr ? 0 : net.connect(context, device, handle, &send), 0);
      ASSERT_EQ(recv != nullptr ? 0 : net.accept(listener, &recv), 0);
    }
  }
  void close() {
    EXPECT_EQ(net.close_send(send), 0);
    EXPECT_EQ(net.close_recv(recv), 0);
    EXPECT_EQ(net.close_listen(listener), 0);
    EXPECT_EQ(net.finalize(context), 0);
  }
};

}  // namespace riffle::wire
