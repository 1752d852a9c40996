// NarrowRun: what sums in a narrower type (RIFFLE_WIRE) need on one node from their beginning to
// their end: for every large call of the agreed sequence what rounding has kept back of its
// elements (float32), and memory for calls under way.
//
// Threads: make() in the Background, the rest on NCCL's progress thread. All memory comes from
// make().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/collective/base/slot_memory.h"
#include "plugin/collective/base/sync_mode.h"
#include "plugin/collective/engine/operation.h"
#include "plugin/identity/layout.h"

namespace riffle {

// Of a call under way: the elements that mean something and behind them the others, each part in
// units of the narrower type that are its own.
struct NarrowSlot {
  Operation sum;
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
  NarrowSlot* next = nullptr;
};

class NarrowRun {
 public:
  static constexpr std::size_t kMostCalls = 16;  // under way at once

  // Whether a call is summed in the narrower type: a large sum of floats that are wider than it.
  static bool is_eligible(const Layout::Piece& piece, WireFormat wire, std::uint64_t min_bytes);

  // An error: no call is eligible, or the memory is over the limit.
  static Result<std::unique_ptr<NarrowRun>> make(const std::vector<Layout::Piece>& pieces,
                                                 const SyncSettings& settings);

  WireFormat wire() const { return wire_; }
  DataType type() const {
    return wire_ == WireFormat::kBfloat16 ? DataType::kBfloat16 : DataType::kFloat8Block;
  }
  // Elements of `type` that hold so many numbers.
  std::uint64_t units(std::uint64_t numbers) const;
  // Of the call at a position of the sequence, by element; null where it is exact.
  float* error(std::size_t position) { return errors_[position]; }
  std::size_t bytes() const { return bytes_; }

  NarrowSlot* take();  // null: none is free
  void give_back(NarrowSlot* slot);

 private:
  NarrowRun() = default;

  WireFormat wire_ = WireFormat::kBfloat16;
  std::vector<float*> errors_;
  std::unique_ptr<NarrowSlot[]> slots_;
  NarrowSlot* free_ = nullptr;
  std::size_t bytes_ = 0;
  std::unique_ptr<SlotMemory> memory_;
};

}  // namespace riffle
