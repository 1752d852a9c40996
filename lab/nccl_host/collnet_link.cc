#include "lab/nccl_host/collnet_link.h"

#include <algorithm>
#include <cstring>

namespace riffle::host {

CollNetLink::CollNetLink(CollNetTable& table, int rank, int channels, std::size_t buffer_bytes,
                         bool poison)
    : table_(table),
      rank_(rank),
      channels_(channels),
      slot_bytes_(buffer_bytes / kSteps),
      poison_(poison),
      send_(static_cast<std::size_t>(channels)),
      receive_(static_cast<std::size_t>(channels)) {
  for (Fifo& f : send_) f.credit = 0;  // slots are assigned step by step
}

int CollNetLink::attach(void* comm) {
  comm_ = comm;
  const std::size_t bytes = 2 * kSteps * slot_bytes_ * static_cast<std::size_t>(channels_);
  if (!region_.allocate(bytes)) return 2;
  for (int i = 0; i < 2 * channels_; ++i) {
    void* mr = nullptr;
    if (const int r = table_.register_memory(comm_, region_.data(), bytes, &mr); r != kSuccess) {
      return r;
    }
    mrs_.push_back(mr);
  }
  return kSuccess;
}

int CollNetLink::detach() {
  if (comm_ == nullptr) return kSuccess;
  int first_error = kSuccess;
  auto keep = [&](int r) {
    if (first_error == kSuccess) first_error = r;
  };
  for (void* mr : mrs_) {
    keep(table_.deregister_memory(comm_, mr));
    region_.release();
  }
  mrs_.clear();
  keep(table_.close_coll(comm_));
  comm_ = nullptr;
  return first_error;
}

int CollNetLink::outstanding() const {
  std::uint64_t n = 0;
  for (const Group& g : groups_) n += g.posted - g.done;
  return static_cast<int>(n);
}

int CollNetLink::channels_of(std::size_t group) const {
  return std::min(kGroupChannels, ops_.front().channels - static_cast<int>(group) * kGroupChannels);
}

// Slots are numbered anew with every collective; chunks of a step lie side by side.
std::byte* CollNetLink::staging(bool receive, std::uint64_t step, int channel) const {
  const std::size_t slot = (receive ? kSteps : 0) + step % kSteps;
  return region_.data() + slot * static_cast<std::size_t>(channels_) * slot_bytes_ +
         static_cast<std::size_t>(channel) * ops_.front().chunk_bytes;
}

void CollNetLink::begin() {
  const CollNetOp& op = ops_.front();
  base_ = step_;
  step_ += op.steps;
  groups_.assign(static_cast<std::size_t>((op.channels + kGroupChannels - 1) / kGroupChannels), {});
  next_group_ = 0;
  begun_ = true;
  for (int c = 0; c < op.channels; ++c) {
    // Channels that the last collectives did not use catch up with the common step count.
    send_[static_cast<std::size_t>(c)].tail = base_;
    receive_[static_cast<std::size_t>(c)].head = receive_[static_cast<std::size_t>(c)].tail = base_;
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) grant_credits(g);
}

void CollNetLink::grant_credits(std::size_t group) {
  const std::uint64_t end = std::min(ops_.front().steps, groups_[group].done + kSteps);
  for (int i = 0; i < channels_of(group); ++i) {
    const int channel = static_cast<int>(group) * kGroupChannels + i;
    Fifo& f = to_network(channel);
    for (std::uint64_t s = f.credit > base_ ? f.credit - base_ : 0; s < end; ++s) {
      f.slot[(base_ + s) % kSteps] = staging(false, s, channel);
    }
    f.credit = base_ + end;
  }
}

bool CollNetLink::data_ready(std::size_t group) const {
  const std::size_t first = group * kGroupChannels;
  const std::uint64_t wanted = base_ + groups_[group].posted + 1;
  return std::all_of(send_.begin() + static_cast<long>(first),
                     send_.begin() + static_cast<long>(first) + channels_of(group),
                     [&](const Fifo& f) { return f.tail >= wanted; });
}

std::uint64_t CollNetLink::consumed(std::size_t group) const {
  std::uint64_t least = ops_.front().steps;
  for (int i = 0; i < channels_of(group); ++i) {
    least = std::min(least,
                     receive_[group * kGroupChannels + static_cast<std::size_t>(i)].head - base_);
  }
  return least;
}

void CollNetLink::paint_tail(std::size_t group) {
  const CollNetOp& op = ops_.front();
  const std::uint64_t step = groups_[group].posted;
  const std::size_t chunks =
      step * static_cast<std::uint64_t>(op.channels) + group * kGroupChannels;
  const std::size_t start = chunks * op.chunk_bytes;
  const std::size_t length = static_cast<std::size_t>(channels_of(group)) * op.chunk_bytes;
  const std::size_t valid = op.bytes > start ? std::min(length, op.bytes - start) : 0;
  // A NaN in every floating type of two bytes or more; the low bits carry the rank. Chunks are
  // multiples of 32 KiB, so the words end where the chunk ends.
  const auto word = static_cast<std::uint32_t>(0x7fc07fc0 | rank_);
  std::byte* at = staging(false, step, static_cast<int>(group) * kGroupChannels);
  for (std::size_t i = round_up(valid, sizeof word); i < length; i += sizeof word) {
    std::memcpy(at + i, &word, sizeof word);
  }
}

int CollNetLink::offer(std::size_t group, bool* moved) {
  Group& g = groups_[group];
  const CollNetOp& op = ops_.front();
  if (poison_) paint_tail(group);
  const int first = static_cast<int>(group) * kGroupChannels;
  const int n = channels_of(group);
  const std::size_t count = static_cast<std::size_t>(n) * op.chunk_bytes / size_of(op.type);
  // The handles of the group's last channel, as NCCL passes them.
  const std::size_t last = static_cast<std::size_t>(first + n - 1);
  void* request = nullptr;
  const int r =
      table_.iallreduce(comm_, staging(false, g.posted, first), staging(true, g.posted, first),
                        count, static_cast<int>(op.type), static_cast<int>(op.op),
                        mrs_[2 * last + 1], mrs_[2 * last], &request);
  if (r != kSuccess || request == nullptr) return r;
  g.requests[g.posted % kSteps] = request;
  ++g.posted;
  ++calls_;
  next_group_ = (next_group_ + 1) % groups_.size();
  *moved = true;
  return kSuccess;
}

int CollNetLink::test_oldest(std::size_t group, bool* moved) {
  Group& g = groups_[group];
  int done = 0, size = 0;
  if (const int r = table_.test(g.requests[g.done % kSteps], &done, &size); r != kSuccess) return r;
  if (done == 0) return kSuccess;
  for (int i = 0; i < channels_of(group); ++i) {
    const int channel = static_cast<int>(group) * kGroupChannels + i;
    Fifo& f = from_network(channel);
    f.slot[f.tail % kSteps] = staging(true, g.done, channel);
    ++f.tail;
  }
  ++g.done;
  grant_credits(group);
  *moved = true;
  return kSuccess;
}

int CollNetLink::progress(bool* moved) {
  if (ops_.empty()) return kSuccess;
  if (!begun_) begin();
  const CollNetOp& op = ops_.front();
  {
    const Group& g = groups_[next_group_];
    if (g.posted < op.steps && g.posted < g.done + kSteps &&
        g.posted < consumed(next_group_) + kSteps && data_ready(next_group_)) {
      if (const int r = offer(next_group_, moved); r != kSuccess) return r;
    }
  }
  bool finished = true;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].done < groups_[g].posted) {
      if (const int r = test_oldest(g, moved); r != kSuccess) return r;
    }
    finished &= groups_[g].done == op.steps && consumed(g) == op.steps;
  }
  if (finished) {
    ops_.pop_front();
    begun_ = false;
    *moved = true;
  }
  return kSuccess;
}

}  // namespace riffle::host
