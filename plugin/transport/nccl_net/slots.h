// The host memory that one of the library's connections moves messages from or to: some places,
// registered with it as one region. Everything goes through them, so that the library never holds
// an address of the job's memory, and a library that refuses to register that does no harm.
//
// Threads: the reactor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/nccl_net/net.h"

namespace riffle::nccl_net {

// Of a connection; half of what NCCL itself has outstanding at the most (kNetMaxRequests).
inline constexpr std::size_t kMostSlots = 16;
// A frame as large as engines make them by default, header included, in whole pages.
inline constexpr std::size_t kSlotBytes = (128 << 10) + 4096;
// Each message begins with its number.
inline constexpr std::size_t kMessageHeadBytes = 8;
inline constexpr std::size_t kContentBytes = kSlotBytes - kMessageHeadBytes;
inline constexpr int kTag = 1;  // of all messages

// The slots of one communicator's connections. Every node has connections to all others, so large
// communicators have fewer on each; and those of a process share 256 MiB, first come, first served,
// unless it takes more for two on each. Returned when it goes. Nodes of one communicator may come
// to different numbers, as a receiver says how many it has. Any thread.
class SlotGrant {
 public:
  // `version` is that of the library's table: those of NCCL up to 2.18, v6 and older, need not bear
  // more than 8 requests on a connection.
  SlotGrant(int peers, int version);
  ~SlotGrant();
  SlotGrant(const SlotGrant&) = delete;
  SlotGrant& operator=(const SlotGrant&) = delete;

  std::size_t of_each() const { return of_each_; }  // of its connections

 private:
  const std::size_t connections_;
  std::size_t of_each_ = 0;
};

class Slots {
 public:
  explicit Slots(std::size_t count) : count_(count) {}  // 1..kMostSlots
  // Memory that the library may still use stays for ever: it is registered, as the library was not
  // told that it goes (exit_guard.h), or refused to let it go.
  ~Slots();
  // For messages: "node 3 (10.0.0.3:4000)".
  Status open(const Net& net, void* comm, const std::string& peer);
  // Before the connection is closed.
  void close(const Net& net, void* comm);
  // The library refused to close the connection.
  void keep() { is_kept_ = true; }

  bool is_open() const { return is_registered_; }
  std::size_t count() const { return count_; }
  void* region() const { return region_; }
  std::byte* at(std::uint64_t message) const {
    return memory_.get() + message % count_ * kSlotBytes;
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  const std::size_t count_;
  std::unique_ptr<std::byte, Free> memory_;
  void* region_ = nullptr;
  bool is_registered_ = false, is_kept_ = false;
};

}  // namespace riffle::nccl_net
