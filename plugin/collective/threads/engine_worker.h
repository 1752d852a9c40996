// EngineWorker: one of a communicator's engines that runs on a further progress thread, and what
// goes between that and the communicator's own thread, "the owner's" (threaded_engine.h).
//
// Operations cross by a ring, as copies, and nothing on that way waits or allocates. Changes of the
// plan wait for the thread (MeshPart::run_and_wait).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "plugin/collective/engine/engine.h"
#include "plugin/collective/engine/shared_operation.h"
#include "plugin/transport/base/mesh_part.h"

namespace riffle {

class EngineWorker final : private FrameSink {
 public:
  // `told`: what happened here may concern the owner: take_lost(), has_room().
  EngineWorker(MeshPart* part, const EngineOptions& options, std::function<void()> told);

  // ---- the owner's thread ----

  // Runs `f` with the engine, once it knows of all that was posted.
  void with_engine(const std::function<void(Engine&)>& f);
  // Can one more operation be posted now? If not, `told` follows.
  bool has_room();
  // The engine's part of an operation that all engines share, or, with null, one that it only
  // counts. Precondition: has_room().
  void post(const Operation& operation, SharedOperation* shared);
  // Peers that were lost to it, or broke the protocol. An own failure goes to the mesh.
  std::vector<std::pair<int, Status>> take_lost();
  // As of its last turn.
  std::size_t generations() const { return generations_.load(std::memory_order_relaxed); }
  // Has a frame come or left since the last call?
  bool take_moved() { return has_moved_.exchange(false, std::memory_order_relaxed); }

 private:
  void opened(int /*peer*/) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;
  void departed(int /*peer*/) override {}  // the owner hears it, too
  void lost(int peer, const Status& why) override;
  void failed(const Status& why) override;

  void take_posted();
  void after_turn();
  void told();

  MeshPart* const part_;
  const std::function<void()> told_;
  Engine engine_;
  std::vector<Operation> ring_;  // free unless kRunning
  std::uint64_t next_ = 0;       // to be taken from the ring; the part's thread
  std::atomic<std::uint64_t> head_{0}, tail_{0};
  std::atomic<bool> owner_waits_{false};  // for room in the ring
  std::atomic<bool> has_moved_{false};
  std::atomic<std::size_t> generations_{1};
  std::mutex mutex_;  // of what follows
  std::vector<std::pair<int, Status>> lost_;
  Status failure_;
};

}  // namespace riffle
