// NicTraffic: what the communicators of a node send and receive over the same NICs, so that each of
// them can tell a NIC that is busy with another from a slow one (topology/probe/passive.h).
//
// Links add the bytes that they hand to the kernel and get from it; that covers meshes and NET, in
// all processes of one user that share a network namespace and /dev/shm: the account is a few pages
// of shared memory, removed by its last user. Where that cannot be made, a process has its own.
// Other users' traffic, and what does not go through Riffle, is not in it: to a communicator that
// is a link with less to give, and its plan follows.
//
// A communicator's nodes that share NICs share a slot of the account, and NET has one. Slots are
// chosen by hash: two communicators of 1,023 in the same slot do not see each other.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/transport/base/link_activity.h"
#include "plugin/transport/device/device.h"

namespace riffle {

class NicTraffic {
 public:
  struct Slot {
    std::atomic<std::uint64_t> out{0}, in{0};
  };
  static constexpr std::size_t kSlots = 1024;

  // The account of the NICs that these addresses belong to.
  static std::shared_ptr<NicTraffic> of(const std::vector<NicAddress>& addresses);
  // The account in this file, one per process and path.
  static std::shared_ptr<NicTraffic> at(const std::string& path);
  ~NicTraffic();
  NicTraffic(const NicTraffic&) = delete;
  NicTraffic& operator=(const NicTraffic&) = delete;

  Slot& of_net() { return use(0); }
  Slot& of_mesh(std::uint64_t communicator) { return use(index(communicator)); }
  // So far, but for this communicator's meshes.
  NicBytes others(std::uint64_t communicator) const;

 private:
  // Few slots are in use, and sums ask what is in them at their begin and end. Another layout needs
  // a file of another name (of()): another version's processes are foreign traffic then.
  struct Account {
    std::array<std::atomic<std::uint64_t>, kSlots / 64> used{};  // a bit per slot, never taken back
    std::array<Slot, kSlots> slots;
  };

  explicit NicTraffic(std::string path);
  static std::size_t index(std::uint64_t communicator);
  Slot& use(std::size_t slot);
  bool share();

  const std::string path_;
  int fd_ = -1;  // holds a shared lock; -1: the process's own memory
  Account* account_ = nullptr;
};

}  // namespace riffle
