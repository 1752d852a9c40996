// How ranks that nobody forked together find each other: rank 0 serves the bootstrap's hub on a
// Unix socket in a thread of its own, as rank 0 of a PyTorch job serves the store.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "lab/nccl_host/bootstrap.h"
#include "topology/base/status.h"

namespace riffle::training {

class Rendezvous {
 public:
  // Collective; `path` must not exist yet and is removed once all ranks have come. Gives up after
  // kDeadlineMs. The bootstrap serves to open communicators: its hub goes after three times that.
  static Result<std::unique_ptr<Rendezvous>> join(const std::string& path, int rank, int ranks);
  // Rank 0 stays until all ranks have left or the hub is gone.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  host::Bootstrap& bootstrap() { return *bootstrap_; }

  static constexpr int kDeadlineMs = 60000;

 private:
  Rendezvous() = default;
  Status serve(const std::string& path, int ranks);

  std::thread hub_;  // rank 0 only
  std::unique_ptr<host::Bootstrap> bootstrap_;
};

}  // namespace riffle::training
