#include "lab/simulation/simulate.h"

#include <algorithm>
#include <memory>

#include "lab/simulation/dry_calls.h"
#include "plugin/collective/engine/wire.h"
#include "topology/plan/planner.h"

namespace riffle::sim {
namespace {

class DryNode final : private FrameSink {
 public:
  DryNode(SimNetwork* network, int rank, std::uint64_t bytes, const SimulateOptions& options)
      : bytes_(bytes),
        spans_(options.traces ? std::make_unique<SpanLog>(Simulated::kMostSpans / network->size())
                              : nullptr),
        calls_(options.call_bytes, options.outstanding,
               [this](Operation* operation) { engine_.submit(operation); }),
        engine_(&network->mesh(rank), engine_options(options, spans_.get()),
                [this](int, const Status& why) { fail(why); }) {
    network->set_sink(rank, this);
  }

  Status install(const PlanSet& plans) { return engine_.install(plans); }

  void begin() { calls_.begin(bytes_); }
  bool is_finished() const { return calls_.is_finished(); }
  std::uint64_t added_bytes() const { return added_bytes_; }
  const Status& error() const { return error_; }
  SpanLog* spans() const { return spans_.get(); }

 private:
  static EngineOptions engine_options(const SimulateOptions& options, SpanLog* spans) {
    EngineOptions e = options.engine;
    e.trace.log = spans;
    e.has_blocks = false;
    e.max_operations = std::max(e.max_operations, options.outstanding);
    return e;
  }
  void fail(const Status& why) {
    if (error_) error_ = why;
    engine_.fail();
  }

  void opened(int) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    return engine_.get_receive_buffer(peer, header);
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
    const bool is_data = header.type == FrameType::kData;
    if (is_data && !frame_of<DataFrame>(header).is_final) added_bytes_ += header.length;
    engine_.arrived(peer, header, payload);
    calls_.progress();
  }
  void sent(int, std::uint64_t cookie) override {
    engine_.sent(cookie);
    calls_.progress();
  }
  void departed(int) override {}
  void lost(int, const Status& why) override { fail(why); }

  const std::uint64_t bytes_;
  const std::unique_ptr<SpanLog> spans_;  // null: nothing is traced
  DryCalls calls_;
  Status error_;
  std::uint64_t added_bytes_ = 0;
  Engine engine_;
};

std::vector<LinkUse> uses(const Fabric& fabric, const Fluid& fluid, double time_us) {
  std::vector<LinkUse> all;
  const auto add = [&](std::string name, double bytes, std::int64_t kbps) {
    const double could = static_cast<double>(kbps) * time_us / 8e3;
    all.push_back({std::move(name), bytes, kbps == 0 ? 0 : bytes / could});
  };
  for (int n = 0; n < fabric.size(); ++n) {
    const NodeLink& node = fabric.nodes[n];
    const std::string name = node.name.empty() ? std::to_string(n) : node.name;
    add("sending of node " + name, fluid.out_bytes(n), node.out_kbps);
    add("receiving of node " + name, fluid.in_bytes(n), node.in_kbps);
  }
  for (std::size_t r = 0; r < fabric.racks.size(); ++r) {
    const RackLink& rack = fabric.racks[r];
    const std::string name = rack.name.empty() ? std::to_string(r) : rack.name;
    add("uplink of rack " + name, fluid.up_bytes(static_cast<int>(r)), rack.up_kbps);
    add("downlink of rack " + name, fluid.down_bytes(static_cast<int>(r)), rack.down_kbps);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const LinkUse& a, const LinkUse& b) { return a.share > b.share; });
  return all;
}

void take_spans(SpanLog& log, Simulated* result) {
  std::vector<Span>& spans = result->spans.emplace_back();
  for (Span span; log.take(&span);) spans.push_back(span);
  result->dropped_spans += log.dropped();
}

SimOptions network_options(const Fabric& fabric, std::uint64_t bytes, SimOptions options) {
  options.carries_payload = false;
  options.early_headers = false;
  if (options.tick_ns == 0) {
    // A step costs time in proportion to the flows, so large clusters make fewer of them.
    const double parts = std::clamp(1.28e6 / fabric.size(), 1000.0, 20'000.0);
    const double of_bound_ns = bound_us(fabric, bytes) * 1e3 / parts;
    const std::int64_t shortest_us = fabric.rack_latency_us.value_or(fabric.latency_us);
    const double of_latency_ns = static_cast<double>(shortest_us) * 1e3 / 5;
    options.tick_ns =
        static_cast<std::uint64_t>(std::max(1.0, std::min(of_bound_ns, of_latency_ns)));
  }
  return options;
}

}  // namespace

Result<Simulated> simulate(const Fabric& fabric, const PlanSet& plans, std::uint64_t bytes,
                           const SimulateOptions& options) {
  SimNetwork network(fabric, network_options(fabric, bytes, options.network));
  network.open_all();
  std::vector<std::unique_ptr<DryNode>> nodes;
  for (int r = 0; r < fabric.size(); ++r) {
    nodes.push_back(std::make_unique<DryNode>(&network, r, bytes, options));
    if (Status s = nodes.back()->install(plans); !s) return s;
  }
  for (const auto& node : nodes) node->begin();
  Simulated result;
  // What is not finished after the last event never will be; what comes after all nodes have
  // finished (credits on their way back) does not count.
  std::size_t finished = 0;
  while (finished < nodes.size()) {
    if (nodes[finished]->is_finished()) {
      ++finished;
    } else if (!network.step()) {
      return internal_error("deadlock: node " + std::to_string(finished) +
                            " waits and nothing is under way");
    }
  }
  for (const auto& node : nodes) {
    if (!node->error()) return node->error();
    result.most_added_bytes = std::max(result.most_added_bytes, node->added_bytes());
  }
  result.time_us = static_cast<double>(network.now_ns()) / 1e3;
  result.links = uses(fabric, network.fluid(), result.time_us);
  result.counters = network.counters();
  if (options.traces) {
    for (const auto& node : nodes) take_spans(*node->spans(), &result);
  }
  return result;
}

}  // namespace riffle::sim
