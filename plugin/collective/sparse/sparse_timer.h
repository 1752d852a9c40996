// SparseTimer adds the time from its making to its end to a total (sparse_work.h) if there is one.
#pragma once

#include <atomic>
#include <cstdint>

#include "plugin/transport/base/mesh.h"

namespace riffle {

class SparseTimer {
 public:
  SparseTimer(const Mesh* mesh, std::atomic<std::uint64_t>* total)
      : mesh_(mesh), total_(total), began_(total == nullptr ? 0 : mesh->now_ns()) {}
  ~SparseTimer() {
    if (total_ != nullptr) total_->fetch_add(mesh_->now_ns() - began_, std::memory_order_relaxed);
  }
  SparseTimer(const SparseTimer&) = delete;
  SparseTimer& operator=(const SparseTimer&) = delete;

 private:
  const Mesh* mesh_;
  std::atomic<std::uint64_t>* total_;
  std::uint64_t began_;
};

}  // namespace riffle
