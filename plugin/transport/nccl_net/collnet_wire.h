// A library's own COLLNET (SHARP's, for one), where all-reduces are left to NCCL: a table of NCCL's
// stands on the library's newest one that is not newer. A member is the library's function itself
// where the types agree, else a translation as NCCL makes it (2.30, src/plugin/net/net_v6.cc to
// net_v11.cc). What the library leaves null stays null.
//
// Errors, threads: as translate.h. Order: find, start, then fill.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>

#include "plugin/transport/nccl_net/context.h"
#include "plugin/transport/nccl_net/library.h"
#include "plugin/transport/nccl_net/properties.h"
#include "plugin/transport/nccl_net/versions.h"
#include "plugin/transport/nccl_net/wire.h"

namespace riffle::nccl_net {

// Set once, before the first table that stands on it is shown.
template <class Theirs>
inline const Theirs* collnet_of_library = nullptr;

template <class Theirs>
struct CollNetOver {
  static constexpr int kTheirs = kVersion<Theirs>;
  static constexpr int kMostParts = 64;  // NCCL never passes more than one

  static const Theirs& lib() { return *collnet_of_library<Theirs>; }

  // -- life; older libraries have no finalize and start once per process

  static abi::NcclResult start(std::uint64_t comm_id, abi::LogFn log, void** theirs) {
    *theirs = nullptr;
    const std::lock_guard lock(life_mutex());
    if constexpr (kTheirs >= 11) {
      return lib().init(theirs, comm_id, log);
    } else {
      static bool is_started = false;
      if (!is_started) {
        if (const auto result = lib().init(log); result != abi::kSuccess) return result;
        is_started = true;
      }
      return abi::kSuccess;
    }
  }
  static abi::NcclResult end([[maybe_unused]] void* theirs) {
    if constexpr (kTheirs >= 11) {
      const std::lock_guard lock(life_mutex());
      if (lib().finalize != nullptr) return lib().finalize(theirs);
    }
    return abi::kSuccess;
  }
  // Names of the functions without which NCCL cannot drive it; empty: all are there. After start,
  // as some libraries fill their tables then.
  static std::string missing() {
    const Theirs& t = lib();
    std::string missing;
    const auto need = [&](bool is_there, const char* name) {
      if (!is_there) missing.append(missing.empty() ? "" : ", ").append(name);
    };
    need(t.devices != nullptr, "devices");
    need(t.getProperties != nullptr, "getProperties");
    need(t.listen != nullptr, "listen");
    need(t.connect != nullptr, "connect");
    need(t.reduceSupport != nullptr, "reduceSupport");
    need(t.regMr != nullptr, "regMr");
    need(t.deregMr != nullptr, "deregMr");
    need(t.iallreduce != nullptr, "iallreduce");
    need(t.test != nullptr, "test");
    need(t.closeColl != nullptr, "closeColl");
    need(t.closeListen != nullptr, "closeListen");
    if constexpr (requires { t.finalize; }) need(t.finalize != nullptr, "finalize");
    return missing;
  }

  // -- what a newer table says, for an older one

  template <class Properties>
  static abi::NcclResult get_properties(int device, Properties* properties) {
    return translated_properties(lib(), device, properties);
  }

  static abi::NcclResult make_v_device(int* device, abi::NetVPropsV12* members) {
    abi::NetVPropsV9 older{};
    if (!copy_members(*members, &older)) return abi::kInvalidArgument;
    return lib().makeVDevice(device, &older);
  }

  static abi::NcclResult listen(void* context, int device, void* handle, void** listener) {
    const Context* const c = contexts().find(context);
    if (c == nullptr) return abi::kInvalidArgument;
    if constexpr (kTheirs >= 11) return lib().listen(c->theirs, device, handle, listener);
    if constexpr (kTheirs < 11) return lib().listen(device, handle, listener);
  }

  static abi::NcclResult reg_mr(void* coll, void* data, std::size_t size, int type,
                                void** mhandle) {
    if (size > INT_MAX) return abi::kInternalError;
    return lib().regMr(coll, data, static_cast<int>(size), type, mhandle);
  }

  static abi::NcclResult iallreduce(void* coll, void* send, void* recv, std::size_t count,
                                    abi::NcclDataType type, abi::NcclRedOp op, void* send_handle,
                                    void* recv_handle, void** request) {
    if (count > INT_MAX) return abi::kInternalError;
    return lib().iallreduce(coll, send, recv, static_cast<int>(count), type, op, send_handle,
                            recv_handle, request);
  }

  static abi::NcclResult iallgather(void* coll, void* send, int count, abi::SgeV9* parts,
                                    std::size_t bytes_per_rank, std::size_t offset,
                                    std::size_t bytes, void* handle, void** request) {
    std::array<abi::SgeV8, kMostParts> older;
    if (!narrow(count, parts, older)) return abi::kInternalError;
    return lib().iallgather(coll, send, count, older.data(), bytes_per_rank, offset, bytes, handle,
                            request);
  }

  static abi::NcclResult ireducescatter(void* coll, int count, abi::SgeV9* parts, void* recv,
                                        std::size_t bytes_per_rank, std::size_t offset,
                                        std::size_t bytes, abi::NcclDataType type,
                                        abi::NcclRedOp op, void* handle, void** request) {
    std::array<abi::SgeV8, kMostParts> older;
    if (!narrow(count, parts, older)) return abi::kInternalError;
    return lib().ireducescatter(coll, count, older.data(), recv, bytes_per_rank, offset, bytes,
                                type, op, handle, request);
  }

  // All members but name, init and finalize, which stay the border's own.
  template <class Ours>
  static void fill(Ours* o) {
    const Theirs& t = lib();
#define RIFFLE_PASS(member, translation)                                   \
  if constexpr (std::is_same_v<decltype(o->member), decltype(t.member)>) { \
    o->member = t.member;                                                  \
  } else {                                                                 \
    o->member = translation;                                               \
  }
    RIFFLE_PASS(getProperties, get_properties)
    RIFFLE_PASS(regMr, reg_mr)
    RIFFLE_PASS(iallreduce, iallreduce)
    if constexpr (requires { o->finalize; }) {  // NCCL's context is ours (context.h)
      o->listen = listen;
    } else {
      o->listen = t.listen;
    }
    if constexpr (requires { o->regMrDmaBuf; }) {
      o->regMrDmaBuf = nullptr;
      if constexpr (requires { t.regMrDmaBuf; }) o->regMrDmaBuf = t.regMrDmaBuf;
    }
    if constexpr (requires { o->iallgather; }) {
      o->iallgather = nullptr;
      o->ireducescatter = nullptr;
      if constexpr (requires { t.iallgather; }) {
        RIFFLE_PASS(iallgather, iallgather)
        RIFFLE_PASS(ireducescatter, ireducescatter)
        if (t.iallgather == nullptr) o->iallgather = nullptr;
        if (t.ireducescatter == nullptr) o->ireducescatter = nullptr;
      }
    }
    if constexpr (requires { o->makeVDevice; }) {
      o->makeVDevice = nullptr;
      if constexpr (requires { t.makeVDevice; }) {
        RIFFLE_PASS(makeVDevice, make_v_device)
        if (t.makeVDevice == nullptr) o->makeVDevice = nullptr;
      }
    }
#undef RIFFLE_PASS
    o->devices = t.devices;
    o->connect = t.connect;
    o->reduceSupport = t.reduceSupport;
    o->deregMr = t.deregMr;
    o->iflush = t.iflush;
    o->test = t.test;
    o->closeColl = t.closeColl;
    o->closeListen = t.closeListen;
  }

 private:
  static bool narrow(int count, const abi::SgeV9* parts,
                     std::array<abi::SgeV8, kMostParts>& older) {
    if (count < 0 || count > kMostParts) return false;
    for (int i = 0; i < count; ++i) {
      const abi::SgeV9& part = parts[i];
      if (part.size > UINT32_MAX) return false;
      older[static_cast<std::size_t>(i)] = {part.mhandle, part.address,
                                            static_cast<std::uint32_t>(part.size)};
    }
    return true;
  }
};

// Under NCCL's table of type Ours.
template <class Ours>
struct CollNetWire {
  int version = 0;  // of the library's table; 0: it has none that is old enough
  abi::NcclResult (*start)(std::uint64_t comm_id, abi::LogFn log, void** theirs) = nullptr;
  abi::NcclResult (*end)(void* theirs) = nullptr;
  std::string (*missing)() = nullptr;
  void (*fill)(Ours*) = nullptr;
};

template <class Ours>
CollNetWire<Ours> find_collnet(const Library& library) {
  CollNetWire<Ours> wire;
  use_newest_collnet([&]<class Theirs>() {
    if constexpr (kVersion < Theirs >> kVersion<Ours>) {
      return false;
    } else {
      using Over = CollNetOver<Theirs>;
      const auto* const found = static_cast<const Theirs*>(library.collnets[Over::kTheirs]);
      if (found == nullptr || found->init == nullptr) return false;
      collnet_of_library<Theirs> = found;
      wire = {Over::kTheirs, Over::start, Over::end, Over::missing, Over::template fill<Ours>};
      return true;
    }
  });
  return wire;
}

}  // namespace riffle::nccl_net
