// Programs of all ranks of a communicator, run side by side in one thread over connections in
// memory: whether schedules fit together, without a plugin and without processes.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "lab/nccl_host/work/kernel.h"

namespace riffle::bench {

// Two fifos with buffers of their own, and what a NET transport does between them.
class MemoryWire {
 public:
  explicit MemoryWire(std::size_t step_bytes) : memory_(2 * host::kSteps * step_bytes) {
    for (std::size_t i = 0; i < host::kSteps; ++i) {
      send.slot[i] = &memory_[i * step_bytes];
      receive.slot[i] = &memory_[(host::kSteps + i) * step_bytes];
    }
  }

  bool move() {
    if (receive.tail == send.tail || receive.tail - receive.head == host::kSteps) return false;
    const std::size_t at = receive.tail % host::kSteps;
    std::copy_n(send.slot[at], send.bytes[at], receive.slot[at]);
    bytes_ += send.bytes[at];
    ++receive.tail;
    ++send.credit;
    return true;
  }
  std::size_t bytes() const { return bytes_; }

  host::Fifo send, receive;

 private:
  std::vector<std::byte> memory_;
  std::size_t bytes_ = 0;
};

class MemoryRanks {
 public:
  explicit MemoryRanks(std::size_t step_bytes) : step_bytes_(step_bytes) {}

  MemoryWire& wire(int channel, int from, int to) {
    auto& wire = wires_[{channel, from, to}];
    if (!wire) wire = std::make_unique<MemoryWire>(step_bytes_);
    return *wire;
  }
  // After what the lane has. Programs of one lane run one after another.
  void add(int rank, int channel, int way, host::Program program) {
    program.step_bytes = step_bytes_;
    programs_[{rank, channel, way}].push_back(std::move(program));
  }

  // False: something waits for ever, or data that nothing takes is left.
  bool run() {
    std::vector<host::Lane> lanes;
    for (auto& [key, programs] : programs_) lanes.emplace_back(std::move(programs));
    programs_.clear();
    for (bool moved = true; moved;) {
      moved = false;
      for (host::Lane& lane : lanes) moved |= lane.step();
      for (auto& [key, wire] : wires_) moved |= wire->move();
    }
    for (const host::Lane& lane : lanes) {
      if (!lane.done()) return false;
    }
    for (const auto& [key, wire] : wires_) {
      if (wire->receive.head != wire->send.tail) return false;
    }
    return true;
  }
  std::size_t sent_by(int rank) const {
    std::size_t bytes = 0;
    for (const auto& [key, wire] : wires_) bytes += std::get<1>(key) == rank ? wire->bytes() : 0;
    return bytes;
  }

 private:
  std::size_t step_bytes_;
  std::map<std::tuple<int, int, int>, std::unique_ptr<MemoryWire>> wires_;
  std::map<std::tuple<int, int, int>, std::vector<host::Program>> programs_;
};

}  // namespace riffle::bench
