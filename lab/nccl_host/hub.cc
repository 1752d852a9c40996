#include "lab/nccl_host/hub.h"

#include <algorithm>

#include "lab/nccl_host/bootstrap_wire.h"

namespace riffle::host {

bool Hub::serve(Clock::time_point deadline) {
  while (std::any_of(fds_.begin(), fds_.end(), [](int fd) { return fd >= 0; })) {
    std::vector<pollfd> polls;
    for (int fd : fds_) polls.push_back({fd, POLLIN, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    poll(polls.data(), polls.size(), static_cast<int>(left.count()));
    for (std::size_t rank = 0; rank < fds_.size(); ++rank) {
      if (polls[rank].revents != 0 && !read_one(static_cast<int>(rank), deadline)) {
        lose(static_cast<int>(rank), deadline);
      }
    }
  }
  return true;
}

void Hub::close_all() {
  for (int& fd : fds_) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
}

bool Hub::read_one(int rank, Clock::time_point deadline) {
  WireHeader header{};
  if (!transfer_all<false>(fds_[rank], &header, sizeof header, deadline)) return false;
  if (header.members > kRanksMax || header.bytes > kBlobBytesMax) return false;
  std::vector<int> members(header.members);
  std::vector<std::byte> payload(header.bytes);
  if (!transfer_all<false>(fds_[rank], members.data(), members.size() * sizeof(int), deadline) ||
      !transfer_all<false>(fds_[rank], payload.data(), payload.size(), deadline)) {
    return false;
  }
  if (header.kind == WireKind::kNote) {
    if (on_note_) {
      on_note_(rank, {reinterpret_cast<const char*>(payload.data()), payload.size()});
    }
    return true;
  }
  Gather& gather = gathers_[members];
  gather.bytes = header.bytes;
  gather.parts[rank] = std::move(payload);
  answer(members, deadline);
  return true;
}

void Hub::answer(const std::vector<int>& members, Clock::time_point deadline) {
  auto it = gathers_.find(members);
  int gone = -1;
  for (int m : members) {
    if (fds_[static_cast<std::size_t>(m)] < 0) gone = m;
  }
  if (gone < 0 && it->second.parts.size() < members.size()) return;
  std::vector<std::byte> all;
  for (auto& [rank, part] : it->second.parts) all.insert(all.end(), part.begin(), part.end());
  for (auto& [rank, part] : it->second.parts) {
    WireHeader header{gone < 0 ? WireKind::kReply : WireKind::kPeerGone, gone,
                      gone < 0 ? all.size() : 0, 0};
    int fd = fds_[static_cast<std::size_t>(rank)];
    if (fd < 0 || !transfer_all<true>(fd, &header, sizeof header, deadline)) continue;
    transfer_all<true>(fd, all.data(), header.bytes, deadline);
  }
  gathers_.erase(it);
}

void Hub::lose(int rank, Clock::time_point deadline) {
  close(fds_[static_cast<std::size_t>(rank)]);
  fds_[static_cast<std::size_t>(rank)] = -1;
  std::vector<std::vector<int>> affected;
  for (const auto& [members, gather] : gathers_) {
    if (std::find(members.begin(), members.end(), rank) != members.end()) {
      affected.push_back(members);
    }
  }
  for (const auto& members : affected) answer(members, deadline);
}

}  // namespace riffle::host
