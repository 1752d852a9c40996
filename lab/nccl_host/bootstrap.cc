#include "lab/nccl_host/bootstrap.h"

#include <sys/random.h>

#include <cstring>
#include <utility>

#include "lab/nccl_host/bootstrap_wire.h"

namespace riffle::host {

struct Bootstrap::Socket {
  Socket(int fd_in, int deadline_ms_in) : fd(fd_in), deadline_ms(deadline_ms_in) {}
  ~Socket() { close(fd); }
  int fd;
  int deadline_ms;
  std::mutex mutex;  // one exchange at a time
};

Bootstrap::Bootstrap(int fd, int rank, int size, int deadline_ms)
    : socket_(std::make_shared<Socket>(fd, deadline_ms)), rank_(rank) {
  for (int r = 0; r < size; ++r) members_.push_back(r);
}

Bootstrap::Bootstrap(std::shared_ptr<Socket> socket, std::vector<int> members, int rank)
    : socket_(std::move(socket)), members_(std::move(members)), rank_(rank) {}

Status Bootstrap::all_gather(const void* mine, void* all, std::size_t bytes) {
  std::scoped_lock lock(socket_->mutex);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(socket_->deadline_ms);
  WireHeader header{WireKind::kGather, -1, bytes, static_cast<std::uint32_t>(members_.size())};
  const bool sent =
      transfer_all<true>(socket_->fd, &header, sizeof header, deadline) &&
      transfer_all<true>(socket_->fd, members_.data(), members_.size() * sizeof(int), deadline) &&
      transfer_all<true>(socket_->fd, const_cast<void*>(mine), bytes, deadline);
  WireHeader reply{};
  if (!sent || !transfer_all<false>(socket_->fd, &reply, sizeof reply, deadline)) {
    return timeout_error("bootstrap: no answer from the launcher within " +
                         std::to_string(socket_->deadline_ms) + " ms");
  }
  if (reply.kind == WireKind::kPeerGone) {
    return remote_error("bootstrap: rank " + std::to_string(reply.peer) + " is gone");
  }
  if (reply.bytes != bytes * members_.size()) {
    return internal_error("bootstrap: ranks gather blobs of different sizes");
  }
  if (!transfer_all<false>(socket_->fd, all, reply.bytes, deadline)) {
    return timeout_error("bootstrap: the launcher's answer stopped half way");
  }
  return Status::ok();
}

Status Bootstrap::barrier() {
  std::vector<char> all(members_.size());
  const char mine = 0;
  return all_gather(&mine, all.data(), 1);
}

Status Bootstrap::broadcast(void* data, std::size_t bytes, int root) {
  std::vector<std::byte> all(bytes * members_.size());
  Status status = all_gather(data, all.data(), bytes);
  if (status) std::memcpy(data, all.data() + static_cast<std::size_t>(root) * bytes, bytes);
  return status;
}

Result<std::unique_ptr<Bootstrap>> Bootstrap::split(int colour) {
  std::vector<int> colours(members_.size());
  if (Status s = all_gather(&colour, colours.data(), sizeof colour); !s) return s;
  std::vector<int> members;
  int rank = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (colours[i] != colour) continue;
    if (static_cast<int>(i) == rank_) rank = static_cast<int>(members.size());
    members.push_back(members_[i]);
  }
  return std::unique_ptr<Bootstrap>(new Bootstrap(socket_, std::move(members), rank));
}

Status Bootstrap::note(const std::string& text) {
  std::scoped_lock lock(socket_->mutex);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(socket_->deadline_ms);
  WireHeader header{WireKind::kNote, -1, text.size(), 0};
  if (!transfer_all<true>(socket_->fd, &header, sizeof header, deadline) ||
      !transfer_all<true>(socket_->fd, const_cast<char*>(text.data()), text.size(), deadline)) {
    return system_error("bootstrap: the launcher does not read");
  }
  return Status::ok();
}

Result<std::uint64_t> draw_id(Bootstrap& bootstrap) {
  std::uint64_t id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) return system_error("getrandom failed");
  id |= 1;  // not 0, which means "none"
  if (Status s = bootstrap.broadcast(&id, sizeof id, 0); !s) return s;
  return id;
}

}  // namespace riffle::host
