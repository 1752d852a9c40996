// A coll object with its staging region, driven as NCCL's CollNet transport drives it
// (its transport/coll_net.cc, sendProxyProgress and recvProxyProgress for one rank per node).
//
// The region holds 2 x 8 step slots of channels x slot bytes: first half to send, second half to
// receive. Per step and group of up to eight channels one iallreduce covers the group's chunks,
// which lie side by side; calls are offered strictly in the order (step 0, group 0), (step 0, group
// 1), ...; at most eight per group are outstanding, and only the oldest of a group is tested. The
// count is that of full chunks even where the data end: what lies there is whatever was there
// before.
//
// Set-up and teardown run on any one thread; progress() only on the one that drives the proxies.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "lab/nccl_host/memory_region.h"
#include "lab/nccl_host/tables/plugin_tables.h"
#include "lab/nccl_host/work/fifo.h"
#include "plugin/kernels/types.h"

namespace riffle::host {

inline constexpr int kGroupChannels = 8;  // COLLNET_GROUP_NSUBS

struct CollNetOp {
  int channels = 1;
  std::uint64_t steps = 0;
  std::size_t chunk_bytes = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::size_t bytes = 0;  // valid bytes of the whole collective
};

class CollNetLink {
 public:
  // poison: before every post, paint the stale tail with a NaN pattern of this rank's own. Real
  // memory holds leftovers there; this is the worst leftover.
  CollNetLink(CollNetTable& table, int rank, int channels, std::size_t buffer_bytes, bool poison);

  Fifo& to_network(int channel) { return send_[static_cast<std::size_t>(channel)]; }
  Fifo& from_network(int channel) { return receive_[static_cast<std::size_t>(channel)]; }
  std::size_t step_bytes() const { return slot_bytes_; }
  void post(const CollNetOp& op) { ops_.push_back(op); }
  bool idle() const { return ops_.empty(); }

  // Takes over a connected coll object and registers the region 2 x channels times.
  int attach(void* comm);
  int progress(bool* moved);
  // As sendProxyFree and recvProxyFree: the region is gone after the first deregMr, before the
  // others and closeColl, whatever is outstanding.
  int detach();

  int outstanding() const;
  std::uint64_t calls() const { return calls_.load(); }  // accepted so far; from any thread

 private:
  struct Group {
    std::uint64_t posted = 0, done = 0;
    std::array<void*, kSteps> requests{};
  };
  void begin();
  int channels_of(std::size_t group) const;
  std::byte* staging(bool receive, std::uint64_t step, int channel) const;
  bool data_ready(std::size_t group) const;
  std::uint64_t consumed(std::size_t group) const;
  void grant_credits(std::size_t group);
  int offer(std::size_t group, bool* moved);
  int test_oldest(std::size_t group, bool* moved);
  void paint_tail(std::size_t group);

  CollNetTable& table_;
  int rank_, channels_;
  std::size_t slot_bytes_;
  bool poison_;
  void* comm_ = nullptr;
  MemoryRegion region_;
  std::vector<void*> mrs_;  // receive and send handle of every channel, in that order
  std::vector<Fifo> send_, receive_;
  std::deque<CollNetOp> ops_;
  bool begun_ = false;
  std::uint64_t step_ = 0, base_ = 0;
  std::vector<Group> groups_;
  std::size_t next_group_ = 0;  // the cursor of posting
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace riffle::host
