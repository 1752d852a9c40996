// N engines on an in-memory network, and the operations of one test case with their reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/memory/memory_network.h"
#include "plugin/collective/engine/engine.h"

namespace riffle::testing {

class EngineNode final : public FrameSink {
 public:
  EngineNode(Mesh* mesh, const EngineOptions& options)
      : engine(mesh, options, [this](int, const Status& why) { fail(why); }) {}
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

  Engine engine;
  Status error;
};

class EngineCluster {
 public:
  EngineCluster(const PlanSet& plans, const EngineOptions& options, std::uint64_t seed)
      : network(plans.lanes[0].nodes, seed) {
    for (int r = 0; r < plans.lanes[0].nodes; ++r) {
      nodes.push_back(std::make_unique<EngineNode>(&network.mesh(r), options));
      network.set_sink(r, nodes.back().get());
      const Status installed = nodes.back()->engine.install(plans);
      if (!installed) nodes.back()->error = installed;
    }
  }
  // The first error of any node; empty if none.
  std::string error() const {
    for (std::size_t r = 0; r < nodes.size(); ++r) {
      if (!nodes[r]->error) return "node " + std::to_string(r) + ": " + nodes[r]->error.message();
    }
    return "";
  }

  MemoryNetwork network;
  std::vector<std::unique_ptr<EngineNode>> nodes;
};

}  // namespace riffle::testing
