// ThreadedEngine: the engines of one communicator, the owner's and, where it has several progress
// threads (RIFFLE_THREADS), one per further thread, each over its part of the mesh
// (mesh_part.h). With one thread it is an Engine, and nothing else.
//
// Division of the work: all number the chunks of all operations alike, and of large ones chunk s is
// run by engine s mod their number, so that sockets, checksums and sums of different chunks keep
// different threads busy. A chunk keeps its number and lane, so no bit depends on how many threads
// there are. Small operations, which end on the thread that posts them, are the first engine's.
//
// A plan is taken, held and switched to by all engines at once: the owner waits for the other
// threads then, and they never wait for it.
//
// Threads: the owner's of the mesh.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/collective/engine/engine.h"
#include "plugin/collective/threads/engine_worker.h"

namespace riffle {

class ThreadedEngine {
 public:
  // One per engine, of the same plans.
  using Generations = std::vector<std::unique_ptr<Generation>>;

  // The parts must outlive it.
  ThreadedEngine(Mesh* mesh, const std::vector<MeshPart*>& parts, const EngineOptions& options,
                 Engine::Violation violation);

  // As in Engine, for all of them.
  Status install(const PlanSet& plans);
  Status prepare(Generations generations);
  void switch_at(std::uint64_t seq);
  void drop_prepared();
  // Holds at the first chunk that a further generation could begin with and `chunks` more; that is
  // what it returns.
  std::uint64_t hold_after(std::uint64_t chunks);
  std::size_t generations() const;
  void submit(Operation* operation);
  void fail();
  bool has_failed() const { return engine_.has_failed(); }
  bool is_idle() const;
  std::vector<int> waits_for() const;
  // Has anything moved on the further threads since the last call?
  bool take_moved() const;
  Busy busy() const;

  // Any thread: what prepare() takes.
  static Result<Generations> make(const PlanSet& plans, std::uint64_t number, int rank, int size,
                                  const EngineOptions& options);

  // The first engine's, which stand for all.
  const EngineOptions& options() const { return engine_.options(); }
  void use_lengths(bool is_on) { engine_.use_lengths(is_on); }
  std::uint64_t lengths_asked() const { return engine_.lengths_asked(); }
  std::uint64_t next_seq() const { return engine_.next_seq(); }
  std::uint64_t generation() const { return engine_.generation(); }
  std::uint64_t next_generation() const { return engine_.next_generation(); }
  std::uint64_t newest_generation() const { return engine_.newest_generation(); }
  std::uint64_t holds_reached() const { return engine_.holds_reached(); }

  // Frames of the mesh itself.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) {
    return engine_.get_receive_buffer(peer, header);
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) {
    engine_.arrived(peer, header, payload);
    if (running_ > 0) account();
  }
  void sent(std::uint64_t cookie) { engine_.sent(cookie); }

 private:
  // A large operation under way: the first engine's part of it, and all engines' outcome.
  struct Shared {
    SharedOperation outcome;
    Operation part;
    bool is_running = false;
    bool is_sum = false;  // as Busy counts them
    std::size_t bytes = 0;
    std::uint64_t began_ns = 0;
  };

  bool post(Operation* operation);
  void account();
  void told();

  Mesh* const mesh_;
  const Engine::Violation violation_;
  Engine engine_;
  std::vector<std::unique_ptr<EngineWorker>> workers_;
  std::vector<Shared> shared_;
  int running_ = 0;  // of them
  BusyAccount busy_;
  std::vector<Operation*>
      waiting_;  // for room in the rings of the workers, in the order of submit()
};

}  // namespace riffle
