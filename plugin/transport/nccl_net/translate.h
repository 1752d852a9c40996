// The calls of NCCL's newer NET tables on a library's older one, as NCCL's own translation makes
// them (2.30, src/plugin/net/net_v6.cc to net_v11.cc). Overloads have the parameter lists that
// NCCL's versions have; pass_through.h takes each by its type, and only where the lists differ.
//
// Errors: what an older list cannot express (a size above its int, more members of a virtual device
// than it has room for) is an internal or invalid-argument error, before the library is called, as
// is a context that is not alive; else the library's code. No allocation; a lock where a context is
// looked up; threads as the library demands.
#pragma once

#include <array>
#include <cstddef>

#include "plugin/abi/common.h"
#include "plugin/abi/constants.h"
#include "plugin/abi/net.h"
#include "plugin/transport/nccl_net/context.h"
#include "plugin/transport/nccl_net/properties.h"
#include "plugin/transport/nccl_net/versions.h"

namespace riffle::nccl_net {

// getProperties of a library's table, NET or COLLNET, as a record of another version.
template <class Theirs, class Properties>
abi::NcclResult translated_properties(const Theirs& lib, int device, Properties* properties) {
  PropertiesOf<Theirs> older{};
  const abi::NcclResult result = lib.getProperties(device, &older);
  if (result != abi::kSuccess) return result;
  return translate_properties(older, device, properties) ? abi::kSuccess : abi::kInternalError;
}

// The library's table of one version. Set once, before the first table that stands on it is shown.
template <class Theirs>
inline const Theirs* table_of_library = nullptr;

template <class Theirs>
struct Translate {
  static constexpr int kTheirs = kVersion<Theirs>;
  static constexpr std::size_t kMaxIntSize = abi::kDefaultMaxP2pBytes;  // NCCL's MAX_NET_SIZE
  static constexpr int kMaxGroup = 64;                                  // NCCL_PROXY_MAX_SUBS

  static const Theirs& lib() { return *table_of_library<Theirs>; }

  // -- devices

  template <class Properties>
  static abi::NcclResult get_properties(int device, Properties* properties) {
    return translated_properties(lib(), device, properties);
  }

  static abi::NcclResult make_v_device(int* device, abi::NetVPropsV12* members) {
    abi::NetVPropsV9 older{};
    if (!copy_members(*members, &older)) return abi::kInvalidArgument;
    return lib().makeVDevice(device, &older);
  }

  static abi::NcclResult set_net_attr(void* context, abi::NetAttr* attributes) {
    const Context* const c = contexts().find(context);
    return c == nullptr ? abi::kInvalidArgument : lib().setNetAttr(c->theirs, attributes);
  }

  // -- connections

  static abi::NcclResult listen(void* context, int device, void* handle, void** listener) {
    const Context* const c = contexts().find(context);
    if (c == nullptr) return abi::kInvalidArgument;
    if constexpr (kTheirs >= 11) return lib().listen(c->theirs, device, handle, listener);
    if constexpr (kTheirs < 11) return lib().listen(device, handle, listener);
  }

  static abi::NcclResult connect(int device, void* handle, void** comm, abi::NetDevHandle**) {
    return lib().connect(device, handle, comm);
  }

  static abi::NcclResult connect(int device, [[maybe_unused]] abi::NetCommConfig* config,
                                 void* handle, void** comm,
                                 [[maybe_unused]] abi::NetDevHandle** offload) {
    if constexpr (kTheirs == 10) {
      return lib().connect(device, config, handle, comm, offload);
    } else if constexpr (kTheirs >= 7) {
      return lib().connect(device, handle, comm, offload);
    } else {
      return lib().connect(device, handle, comm);
    }
  }

  static abi::NcclResult connect(void* context, int device, void* handle, void** comm,
                                 abi::NetDevHandle** offload) {
    Context* const c = contexts().find(context);
    if (c == nullptr) return abi::kInvalidArgument;
    if constexpr (kTheirs >= 11) return lib().connect(c->theirs, device, handle, comm, offload);
    if constexpr (kTheirs < 11) return connect(device, &c->config, handle, comm, offload);
  }

  static abi::NcclResult accept(void* listener, void** comm, abi::NetDevHandle**) {
    return lib().accept(listener, comm);
  }

  // -- memory

  static abi::NcclResult reg_mr(void* comm, void* data, std::size_t size, int type,
                                void** mhandle) {
    if (size >= std::size_t{1} << 31) return abi::kInternalError;
    return lib().regMr(comm, data, static_cast<int>(size), type, mhandle);
  }

  // -- transfers

  static abi::NcclResult isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                               void** request) {
    if (size > kMaxIntSize) return abi::kInternalError;
    return lib().isend(comm, data, static_cast<int>(size), tag, mhandle, request);
  }

  static abi::NcclResult isend(void* comm, void* data, std::size_t size, int tag, void* mhandle,
                               void*, void** request) {
    if constexpr (kTheirs == 9) return lib().isend(comm, data, size, tag, mhandle, request);
    if constexpr (kTheirs < 9) return isend(comm, data, size, tag, mhandle, request);
  }

  // Libraries of int sizes do not know the marker "completion is optional" either.
  static abi::NcclResult irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags,
                               void** mhandles, void** request) {
    if (n < 0 || n > kMaxGroup) return abi::kInternalError;
    if (*request == reinterpret_cast<void*>(abi::kOptionalRecvCompletion)) *request = nullptr;
    std::array<int, kMaxGroup> small;
    for (int i = 0; i < n; ++i) {
      if (sizes[i] > kMaxIntSize) return abi::kInternalError;
      small[static_cast<std::size_t>(i)] = static_cast<int>(sizes[i]);
    }
    return lib().irecv(comm, n, data, small.data(), tags, mhandles, request);
  }

  static abi::NcclResult irecv(void* comm, int n, void** data, std::size_t* sizes, int* tags,
                               void** mhandles, void**, void** request) {
    if constexpr (kTheirs == 9) return lib().irecv(comm, n, data, sizes, tags, mhandles, request);
    if constexpr (kTheirs < 9) return irecv(comm, n, data, sizes, tags, mhandles, request);
  }
};

}  // namespace riffle::nccl_net
