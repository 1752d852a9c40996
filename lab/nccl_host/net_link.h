// One direction of one channel to one peer, driven through the plugin's NET table as NCCL's net
// transport drives it (its transport/net.cc): eight step slots in a registered region, a proxy that
// posts in step order, retries refused posts and tests only the oldest request.
//
// Set-up and teardown run on any one thread; progress() only on the one that drives the proxies.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>

#include "lab/nccl_host/memory_region.h"
#include "lab/nccl_host/tables/plugin_tables.h"
#include "lab/nccl_host/work/fifo.h"

namespace riffle::host {

// The messages of one collective over one link.
struct LinkOp {
  std::uint64_t steps = 0;   // in all
  Steps size;                // per chunk and per message
  std::size_t capacity = 0;  // bytes a receive allows for
};

class NetLink {
 public:
  NetLink(NetTable& net, int tag, std::size_t buffer_bytes)
      : net_(net), tag_(tag), buffer_bytes_(buffer_bytes) {}
  virtual ~NetLink() = default;
  NetLink(const NetLink&) = delete;

  Fifo& fifo() { return fifo_; }
  std::size_t step_bytes() const { return buffer_bytes_ / kSteps; }
  void post(const LinkOp& op) { ops_.push_back(op); }
  bool idle() const { return ops_.empty(); }

  // Registers the buffers of the three protocols, as NCCL does; only the last one is used here.
  int attach(void* comm);
  // Moves at most one message each way through its states. The plugin's first error, else success.
  virtual int progress(bool* moved) = 0;
  int detach();  // deregisters and closes; also with requests outstanding

 protected:
  virtual int close(void* comm) = 0;
  std::size_t slot_of(std::uint64_t step) const { return (base_ + step) % kSteps; }
  void begin();
  void end_if_done();

  NetTable& net_;
  int tag_;
  void* comm_ = nullptr;
  void* mr_ = nullptr;  // of the Simple buffer
  Fifo fifo_;
  std::deque<LinkOp> ops_;
  std::array<void*, kSteps> requests_{};
  bool begun_ = false;
  std::uint64_t step_ = 0;                                          // over all ops
  std::uint64_t base_ = 0, posted_ = 0, completed_ = 0, done_ = 0;  // within the current op

 private:
  std::size_t buffer_bytes_;
  std::array<MemoryRegion, 3> buffers_;
  std::array<void*, 3> mrs_{};
  int registered_ = 0;
};

class SendLink final : public NetLink {
 public:
  using NetLink::NetLink;
  int progress(bool* moved) override;

 private:
  int close(void* comm) override { return net_.close_send(comm); }
};

class ReceiveLink final : public NetLink {
 public:
  using NetLink::NetLink;
  int progress(bool* moved) override;

 private:
  int close(void* comm) override { return net_.close_recv(comm); }
};

}  // namespace riffle::host
