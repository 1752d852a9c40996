// Another library's NET as the wire of this process: what a NET table of NCCL's stands on, whatever
// the two versions are.
//
// The order is that of NCCL: find_wire, start, and only then missing and fill, as some libraries
// fill their own tables in init. Nothing here allocates after find_wire. start and end take a lock,
// so any thread may call them; the rest as the library demands.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "plugin/abi/common.h"
#include "plugin/transport/nccl_net/library.h"
#include "plugin/transport/nccl_net/pass_through.h"

namespace riffle::nccl_net {

struct StartArguments {
  std::uint64_t comm_id = 0;
  abi::NetCommConfig* config = nullptr;
  abi::LogFn log = nullptr;
  abi::ProfilerFn profiler = nullptr;
};

struct Wire {
  std::string path;  // of the library
  int version = 0;   // of the library's table that is used
  // The library's init and finalize, one for one with NCCL's from v11 on. Older libraries have no
  // finalize and start once per process.
  abi::NcclResult (*start)(const StartArguments&, void** theirs) = nullptr;
  abi::NcclResult (*end)(void* theirs) = nullptr;
  std::string (*missing)() = nullptr;  // names of mandatory functions that are null; empty: none
  abi::NcclResult (*devices)(int*) = nullptr;
  abi::NcclResult (*properties)(int device, abi::NetPropsV12*) = nullptr;
  // For Riffle's own use of the library (net.h): what it calls itself, and a newest table on it.
  const char* (*name)() = nullptr;
  void (*fill_newest)(abi::NetV12*) = nullptr;
};

// ... for one version of NCCL's table, which `fill` makes stand on the library (pass_through.h).
template <class Ours>
struct WireOf : Wire {
  void (*fill)(Ours*) = nullptr;
};

// NCCL starts and ends plugins one at a time in all the process, and Riffle's own starts come
// beside.
inline std::mutex& life_mutex() {
  static std::mutex& one = *new std::mutex;  // outlives every thread
  return one;
}

template <class Theirs>
struct Life {
  static const Theirs& lib() { return *table_of_library<Theirs>; }

  static abi::NcclResult start(const StartArguments& a, void** theirs) {
    *theirs = nullptr;
    const std::lock_guard lock(life_mutex());
    if constexpr (kVersion<Theirs> >= 11) {
      return lib().init(theirs, a.comm_id, a.config, a.log, a.profiler);
    } else {
      static bool is_started = false;
      if (is_started) return abi::kSuccess;
      abi::NcclResult result;
      if constexpr (kVersion<Theirs> == 10) {
        result = lib().init(a.log, a.profiler);
      } else {
        result = lib().init(a.log);
      }
      is_started = result == abi::kSuccess;
      return result;
    }
  }

  static abi::NcclResult end([[maybe_unused]] void* theirs) {
    if constexpr (kVersion<Theirs> >= 11) {
      const std::lock_guard lock(life_mutex());
      return lib().finalize(theirs);
    }
    return abi::kSuccess;
  }

  static std::string missing() { return missing_functions(lib()); }

  static const char* name() { return lib().name == nullptr ? "unnamed" : lib().name; }

  static abi::NcclResult devices(int* count) { return lib().devices(count); }

  static abi::NcclResult properties(int device, abi::NetPropsV12* out) {
    return Translate<Theirs>::get_properties(device, out);
  }

  template <class Ours>
  static void fill(Ours* table) {
    pass_through(lib(), table);
  }
};

// The wire under NCCL's table of type Ours: the library's newest version that is not newer. An
// error says that there is none, or that it cannot be started.
template <class Ours>
Result<WireOf<Ours>> find_wire(const Library& library) {
  WireOf<Ours> wire;
  wire.path = library.path;
  std::string fault = "it has only newer tables";
  use_newest([&]<class Theirs>() {
    if constexpr (kVersion < Theirs >> kVersion<Ours>) {
      return false;
    } else {
      const auto* const found = static_cast<const Theirs*>(library.nets[kVersion<Theirs>]);
      if (found == nullptr) return false;
      fault = found->init == nullptr ? "its table lacks init" : "";
      table_of_library<Theirs> = found;
      wire.version = kVersion<Theirs>;
      wire.start = Life<Theirs>::start;
      wire.end = Life<Theirs>::end;
      wire.missing = Life<Theirs>::missing;
      wire.devices = Life<Theirs>::devices;
      wire.properties = Life<Theirs>::properties;
      wire.name = Life<Theirs>::name;
      wire.fill_newest = Life<Theirs>::template fill<abi::NetV12>;
      wire.fill = Life<Theirs>::template fill<Ours>;
      return true;
    }
  });
  if (fault.empty()) return wire;
  return invalid_argument(library.path + " (" + library.versions() + ") cannot serve NCCL's NET v" +
                          std::to_string(kVersion<Ours>) + ": " + fault);
}

}  // namespace riffle::nccl_net
