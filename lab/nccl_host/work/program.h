// A collective as one channel of one rank executes it: a list of primitives, each receiving from,
// reducing with and sending to the neighbours, with the order and chunk limits of NCCL's kernels.
//
// A program is pure data; kernel.h runs it. Offsets and counts are in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lab/nccl_host/work/fifo.h"
#include "lab/nccl_host/work/reduction.h"

namespace riffle::host {

enum class Local : std::uint8_t { kNone, kInput, kOutput };

struct Primitive {
  bool receive = false;
  bool send = false;
  Local source = Local::kNone;
  Local target = Local::kNone;
  std::size_t source_offset = 0;
  std::size_t target_offset = 0;
  std::size_t count = 0;
  bool last = false;  // its result is final: the place for an average's division
};

struct Program {
  std::vector<Fifo*> receives;
  std::vector<Fifo*> sends;
  std::vector<Primitive> primitives;
  Steps steps;
  std::size_t step_bytes = 0;  // capacity of a step of these fifos
  const void* input = nullptr;
  void* output = nullptr;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  int ranks = 1;  // for averages
  // Between lanes: a program that another lane must have ended before this one begins sets `done`,
  // which is this one's `after`. NCCL's own need neither.
  std::shared_ptr<const bool> after = {};
  std::shared_ptr<bool> done = {};
};

// The part of a collective that one channel carries.
struct Part {
  std::size_t offset = 0;
  std::size_t count = 0;
  std::size_t chunk = 0;  // elements per chunk
};

// Where a rank stands in the ring of its channel.
struct RingPlace {
  int index = 0;  // position; the neighbours are index - 1 and index + 1
  int ranks = 1;
};

// Each returns the primitives in order. total: elements per rank (all-gather, reduce-scatter).
std::vector<Primitive> ring_all_reduce(const Part& part, RingPlace place,
                                       std::size_t element_bytes);
std::vector<Primitive> ring_all_gather(const Part& part, RingPlace place, std::size_t total,
                                       bool in_place);
std::vector<Primitive> ring_reduce_scatter(const Part& part, RingPlace place, std::size_t total);
std::vector<Primitive> ring_broadcast(const Part& part, RingPlace place, int root, bool in_place);
std::vector<Primitive> ring_reduce(const Part& part, RingPlace place, int root);

enum class TreeRole { kRoot, kInner, kLeaf };
// Towards the root and back; a root does everything on the way up.
std::vector<Primitive> tree_up(const Part& part, TreeRole role);
std::vector<Primitive> tree_down(const Part& part, TreeRole role);

// One direction of a message between two ranks, and each half of a CollNet chain of one rank per
// node (channel `channel` of `channels`).
std::vector<Primitive> stream(const Part& part, bool sending);
std::vector<Primitive> collnet(std::size_t count, std::size_t chunk, int channel, int channels,
                               bool sending);

}  // namespace riffle::host
