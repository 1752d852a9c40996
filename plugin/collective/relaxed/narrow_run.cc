#include "plugin/collective/relaxed/narrow_run.h"

#include <algorithm>
#include <string>

#include "plugin/kernels/convert.h"
#include "plugin/kernels/float8_block.h"
#include "plugin/kernels/types.h"

namespace riffle {
namespace {

constexpr std::uint64_t kLeastNarrow = 1024;  // elements of a call: below, it is all latency

std::size_t in_lines(std::size_t bytes) {
  constexpr std::size_t kLine = 64;  // a cache line
  return (bytes + kLine - 1) / kLine * kLine;
}

std::string in_mib(std::size_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20); }

}  // namespace

bool NarrowRun::is_eligible(const Layout::Piece& piece, WireFormat wire, std::uint64_t min_bytes) {
  const auto type = static_cast<DataType>(piece.type);
  const bool is_wider = wire == WireFormat::kFloat8Block || type == DataType::kFloat32;
  return rules::supports(type) && is_wider && piece.op == static_cast<int>(ReduceOp::kSum) &&
         piece.total * size_of(type) >= min_bytes && piece.valid >= kLeastNarrow;
}

std::uint64_t NarrowRun::units(std::uint64_t numbers) const {
  return wire_ == WireFormat::kBfloat16 ? numbers : float8_blocks(numbers);
}

Result<std::unique_ptr<NarrowRun>> NarrowRun::make(const std::vector<Layout::Piece>& pieces,
                                                   const SyncSettings& settings) {
  std::unique_ptr<NarrowRun> run(new NarrowRun);
  run->wire_ = settings.wire;
  std::size_t calls = 0, error_bytes = 0, slot_bytes = 0;
  for (const Layout::Piece& piece : pieces) {
    if (!is_eligible(piece, settings.wire, settings.min_bytes)) continue;
    ++calls;
    error_bytes += in_lines(piece.valid * sizeof(float));
    const std::uint64_t units = run->units(piece.valid) + run->units(piece.count - piece.valid);
    slot_bytes = std::max(slot_bytes, in_lines(units * size_of(run->type())));
  }
  if (calls == 0) {
    return invalid_argument("no call of the job belongs to a large sum of floats wider than it");
  }
  const std::size_t slots = std::min(calls, kMostCalls);
  run->bytes_ = error_bytes + slots * 2 * slot_bytes;
  if (run->bytes_ > settings.state_limit_bytes) {
    return invalid_argument("it needs " + in_mib(run->bytes_) +
                            " MiB, RIFFLE_STATE_LIMIT_MB allows " +
                            in_mib(settings.state_limit_bytes));
  }
  Result<std::unique_ptr<SlotMemory>> memory = SlotMemory::map(run->bytes_);
  if (!memory) return memory.status();
  run->memory_ = std::move(*memory);  // zeros
  std::byte* at = run->memory_->data();
  for (const Layout::Piece& piece : pieces) {
    const bool is_narrow = is_eligible(piece, settings.wire, settings.min_bytes);
    run->errors_.push_back(is_narrow ? reinterpret_cast<float*>(at) : nullptr);
    if (is_narrow) at += in_lines(piece.valid * sizeof(float));
  }
  run->slots_ = std::make_unique<NarrowSlot[]>(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    NarrowSlot& slot = run->slots_[i];
    slot.send = at;
    slot.recv = at + slot_bytes;
    at += 2 * slot_bytes;
    run->give_back(&slot);
  }
  return run;
}

NarrowSlot* NarrowRun::take() {
  NarrowSlot* const slot = free_;
  if (slot != nullptr) free_ = slot->next;
  return slot;
}

void NarrowRun::give_back(NarrowSlot* slot) {
  slot->next = free_;
  free_ = slot;
}

}  // namespace riffle
