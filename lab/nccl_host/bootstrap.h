// How ranks (processes) exchange small blobs before the plugin connects them: NCCL's bootstrap.
//
// A launcher process runs the hub and holds one socket pair per rank, so the exchange works
// whatever network namespace a rank has moved into. The hub answers a gather when all of its
// members have asked; when one of them is gone, the others get an error instead of waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::host {

// A rank's end. Calls may come from any thread, one at a time is served; every call is collective
// over the group and bounded by the deadline.
class Bootstrap {
 public:
  // Group of all ranks. Takes ownership of the socket.
  Bootstrap(int fd, int rank, int size, int deadline_ms = 60000);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }

  // all receives size() blocks of `bytes`, in rank order.
  Status all_gather(const void* mine, void* all, std::size_t bytes);
  Status barrier();
  Status broadcast(void* data, std::size_t bytes, int root);

  // The ranks that pass the same colour form a new group, ordered by rank here. Groups share the
  // socket, so a process must use its groups in an order that is free of cycles between processes.
  Result<std::unique_ptr<Bootstrap>> split(int colour);

  // A message for the launcher (results, progress); does not wait.
  Status note(const std::string& text);

 private:
  struct Socket;
  Bootstrap(std::shared_ptr<Socket> socket, std::vector<int> members, int rank);

  std::shared_ptr<Socket> socket_;
  std::vector<int> members_;  // global ranks
  int rank_;
};

// A number that no other job on this machine has, the same on all ranks of the group: what NCCL
// makes of its unique id.
Result<std::uint64_t> draw_id(Bootstrap& bootstrap);

}  // namespace riffle::host
