// N engines on an in-memory network, and the operations of one test case with their reference.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lab/memory/memory_network.h"
#include "plugin/collective/threads/threaded_engine.h"

namespace riffle::testing {

// A further thread's part of one node's mesh, in the thread of the test: it takes its turns when it
// is told to.
class EnginePart final : public MeshPart {
 public:
  EnginePart(MemoryNetwork& network, int rank)
      : network_(network), rank_(rank), mesh_(network.mesh(rank)) {}
  // What it was woken for. False: nothing.
  bool turn() {
    if (std::exchange(is_woken_, false)) return hooks_.on_wake(), true;
    if (std::exchange(has_told_, false)) return hooks_.on_told(), true;
    return false;
  }

  void start(Hooks hooks) override {
    hooks_ = std::move(hooks);
    network_.set_sink(rank_, hooks_.sink);
  }
  void run_and_wait(const std::function<void()>& f) override { f(); }
  void wake() override { is_woken_ = true; }
  void tell() override { has_told_ = true; }
  void fail(const Status& why) override { failure = why; }
  int rank() const override { return mesh_.rank(); }
  int size() const override { return mesh_.size(); }
  void open(int peer) override { mesh_.open(peer); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    mesh_.send(peer, header, payload, cookie, priority);
  }
  void dismiss(int peer) override { mesh_.dismiss(peer); }
  std::uint64_t now_ns() const override { return mesh_.now_ns(); }
  void abort() override { mesh_.abort(); }

  Status failure;

 private:
  MemoryNetwork& network_;
  const int rank_;
  Mesh& mesh_;
  Hooks hooks_;
  bool is_woken_ = false, has_told_ = false;
};

class EngineNode final : public FrameSink {
 public:
  EngineNode(Mesh* mesh, std::vector<std::unique_ptr<EnginePart>> of_threads,
             const EngineOptions& options)
      : parts(std::move(of_threads)),
        engine(mesh, pointers(), options, [this](int, const Status& why) { fail(why); }) {}
  void opened(int) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return engine.get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    engine.arrived(peer, h, payload);
  }
  void sent(int, std::uint64_t cookie) override { engine.sent(cookie); }
  void departed(int) override {}
  void lost(int, const Status& why) override { fail(why); }
  void fail(const Status& why) {
    if (error.is_ok()) error = why;
    engine.fail();
  }

  std::vector<MeshPart*> pointers() const {
    std::vector<MeshPart*> all;
    for (const auto& part : parts) all.push_back(part.get());
    return all;
  }

  const std::vector<std::unique_ptr<EnginePart>> parts;
  ThreadedEngine engine;
  Status error;
};

class EngineCluster {
 public:
  EngineCluster(const PlanSet& plans, const EngineOptions& options, std::uint64_t seed,
                int threads = 1)
      : network(plans.lanes[0].nodes, seed), random_(seed) {
    for (int thread = 1; thread < threads; ++thread) {
      further_.push_back(std::make_unique<MemoryNetwork>(plans.lanes[0].nodes, seed + thread));
    }
    for (int r = 0; r < plans.lanes[0].nodes; ++r) {
      std::vector<std::unique_ptr<EnginePart>> parts;
      for (const auto& one : further_) parts.push_back(std::make_unique<EnginePart>(*one, r));
      nodes.push_back(std::make_unique<EngineNode>(&network.mesh(r), std::move(parts), options));
      network.set_sink(r, nodes.back().get());
      const Status installed = nodes.back()->engine.install(plans);
      if (!installed) nodes.back()->error = installed;
    }
  }
  // Carries out one event of any thread. False: there is none.
  bool step() {
    const std::size_t first = random_() % (2 * further_.size() + 1);
    for (std::size_t i = 0; i <= 2 * further_.size(); ++i) {
      const std::size_t at = (first + i) % (2 * further_.size() + 1);
      if (at == 0       ? network.step()
          : at % 2 == 1 ? further_[at / 2]->step()
                        : take_turn(at / 2 - 1)) {
        return true;
      }
    }
    return false;
  }
  // Of further threads.
  std::uint64_t further_frames() const {
    std::uint64_t sum = 0;
    for (const auto& one : further_) sum += one->frames_delivered();
    return sum;
  }
  // The first error of any node; empty if none.
  std::string error() const {
    for (std::size_t r = 0; r < nodes.size(); ++r) {
      if (!nodes[r]->error) return "node " + std::to_string(r) + ": " + nodes[r]->error.message();
    }
    return "";
  }

  MemoryNetwork network;  // of the first thread
  std::vector<std::unique_ptr<EngineNode>> nodes;

 private:
  bool take_turn(std::size_t thread) {
    const std::size_t first = random_() % nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[(first + i) % nodes.size()]->parts[thread]->turn()) return true;
    }
    return false;
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<MemoryNetwork>> further_;
};

}  // namespace riffle::testing
