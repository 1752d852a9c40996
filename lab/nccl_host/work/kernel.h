// Runs programs: what the GPU would do between the slots of its connections and the user's buffers.
//
// A launch is one kernel: its lanes (channel, direction) run side by side, the programs of a lane
// one after another, and launches one after another, as on a stream. Single-threaded: step() does
// at most one slice per lane and never waits.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "lab/nccl_host/work/program.h"

namespace riffle::host {

class Lane {
 public:
  explicit Lane(std::vector<Program> programs) : programs_(std::move(programs)) {}
  // One slice, if the connections allow. True when something moved.
  bool step();
  bool done() const { return program_ == programs_.size(); }

 private:
  bool may_begin() const;
  void begin_program();
  void begin_primitive();
  bool connections_ready(const Program& p, const Primitive& q) const;
  void move_slice(const Program& p, const Primitive& q, std::size_t count);

  std::vector<Program> programs_;
  std::size_t program_ = 0;
  std::size_t primitive_ = 0;
  int slice_ = 0;
  std::size_t offset_ = 0;       // within the primitive, elements
  std::size_t slice_count_ = 0;  // elements of a full slice of this primitive
  bool begun_ = false;
};

class Kernel {
 public:
  void launch(std::vector<Lane> lanes) { launches_.push_back(std::move(lanes)); }
  bool step();
  bool idle() const { return launches_.empty(); }
  std::uint64_t finished() const { return finished_; }  // launches so far

 private:
  std::deque<std::vector<Lane>> launches_;
  std::uint64_t finished_ = 0;
};

}  // namespace riffle::host
