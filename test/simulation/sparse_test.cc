// Sparse exchanges of a whole buffer on the simulated network: delays, overtaking frames, lost
// packets, a node that stands still for a while. Nothing may be lost, all nodes get the same bits;
// and how long it takes is what the planner predicted.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "plugin/collective/sparse/sparse_run.h"
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/kernels/types.h"
#include "plugin/transport/base/mesh.h"
#include "plugin/transport/sim/sim_network.h"
#include "sparse/predict.h"

namespace riffle::sparse_test {
namespace {

struct Case {
  int nodes = 8, teams = 1;
  bool is_recursive = false;
  std::size_t calls = 12;
  std::uint64_t elements = 3000;  // of a call
  double density = 0.03;
};

class Node final : public FrameSink {
 public:
  Node(Mesh& mesh, int rank, const Case& c) : data(c.calls, std::vector<float>(c.elements)) {
    Layout::Piece piece;
    piece.valid = piece.count = c.elements;
    piece.total = c.elements * c.calls;
    piece.type = static_cast<int>(DataType::kFloat32);
    SyncSettings settings;
    settings.state_limit_bytes = 1 << 30;
    settings.sparse.density = c.density;
    SparseOrder order;
    order.teams = static_cast<std::uint64_t>(c.teams);
    order.is_recursive = c.is_recursive;
    for (int i = 0; i < c.nodes; ++i) order.node_at.push_back(static_cast<std::uint64_t>(i));
    order.is_sparse.assign(c.calls, 1);
    run = std::move(
        *SparseRun::make(order, std::vector(c.calls, piece), settings, rank, c.nodes, c.elements));
    runner = std::make_unique<SparseRunner>(
        &mesh, SparseRunner::Options{.most_elements = c.elements},
        [this](int, const Status& why) { violation = why.message(); });
  }
  SparseSegment& segment(std::size_t call) const { return run->segments(call)[0]; }
  bool is_over(std::size_t call) const {
    return segment(call).operation.state == Operation::State::kDone;
  }

  // As NCCL: eight calls outstanding, the oldest is looked at first.
  void post(double density) {
    while (next < data.size() && (next < 8 || is_over(next - 8))) {
      SparseSegment& s = segment(next);
      s.send = s.recv = reinterpret_cast<std::byte*>(data[next].data());
      s.density = density;
      s.operation.state = Operation::State::kRunning;
      ++next;
      runner->submit(&s);
    }
  }
  bool is_done() const { return next == data.size() && runner->is_idle(); }

  void opened(int) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return runner->get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    runner->arrived(peer, h, payload);
  }
  void sent(int, std::uint64_t cookie) override { runner->sent(cookie); }
  void departed(int) override {}
  void lost(int, const Status& why) override { violation = why.message(); }

  std::unique_ptr<SparseRun> run;
  std::unique_ptr<SparseRunner> runner;
  std::vector<std::vector<float>> data;
  std::size_t next = 0;
  std::string violation;
};

class Buffer {
 public:
  Buffer(const Fabric& fabric, const sim::SimOptions& options, const Case& c)
      : case_(c), network(fabric, options), random_(7) {
    for (int r = 0; r < c.nodes; ++r) {
      nodes.push_back(std::make_unique<Node>(network.mesh(r), r, c));
      network.set_sink(r, nodes.back().get());
    }
    network.open_all();
  }

  // One all-reduce of the buffer; the first wrong thing, or empty.
  std::string all_reduce() {
    std::normal_distribution<float> normal;
    std::vector<std::vector<double>> owed(case_.calls), size(case_.calls);
    for (std::size_t k = 0; k < case_.calls; ++k) {
      owed[k].resize(case_.elements);
      size[k].resize(case_.elements);
      for (auto& node : nodes) {
        node->next = 0;
        for (std::uint64_t i = 0; i < case_.elements; ++i) {
          const float n = normal(random_);
          node->data[k][i] = n * n * n;
          const auto e = static_cast<double>(node->segment(k).state.residual[i]);
          owed[k][i] += static_cast<double>(node->data[k][i]) + e;
          size[k][i] += std::fabs(static_cast<double>(node->data[k][i])) + std::fabs(e);
        }
      }
    }
    for (auto& node : nodes) {
      for (std::size_t k = 0; k < case_.calls; ++k) {
        node->segment(k).operation.state = Operation::State::kFree;
      }
    }
    if (std::string e = run(); !e.empty()) return e;
    for (std::size_t k = 0; k < case_.calls; ++k) {
      for (auto& node : nodes) {
        if (std::memcmp(node->data[k].data(), nodes[0]->data[k].data(), case_.elements * 4) != 0) {
          return "other bits in call " + std::to_string(k);
        }
      }
      for (std::uint64_t i = 0; i < case_.elements; ++i) {
        auto is = static_cast<double>(nodes[0]->data[k][i]);
        for (auto& node : nodes) is += static_cast<double>(node->segment(k).state.residual[i]);
        if (!(std::fabs(is - owed[k][i]) <= 2 * case_.nodes * std::ldexp(1.0, -24) * size[k][i])) {
          return "not conserved: element " + std::to_string(i) + " of call " + std::to_string(k);
        }
      }
    }
    return "";
  }

 private:
  std::string run() {
    const auto post = [&] {
      bool is_done = true;
      for (auto& node : nodes) {
        node->post(case_.density);
        is_done = is_done && node->is_done();
      }
      return is_done;
    };
    while (!post()) {
      for (auto& node : nodes) {
        if (!node->violation.empty()) return node->violation;
      }
      if (!network.step()) return "nothing moves";
    }
    return "";
  }

  const Case case_;

 public:
  sim::SimNetwork network;
  std::vector<std::unique_ptr<Node>> nodes;

 private:
  std::mt19937 random_;
};

TEST(SparseOnANetwork, NothingIsLostUnderDelaysAndLostPackets) {
  for (int nodes = 2; nodes <= 17; ++nodes) {
    for (int teams = 1; teams <= nodes; ++teams) {
      if (nodes % teams != 0) continue;
      for (const bool is_recursive : {false, true}) {
        if (is_recursive && (teams == 1 || !std::has_single_bit(unsigned(teams)))) continue;
        sim::SimOptions options;
        options.seed = static_cast<std::uint64_t>(nodes * 100 + teams);
        options.jitter_ns = 300'000;
        options.loss_per_frame = 0.01;
        options.retransmit_ns = 5'000'000;
        options.poisons = true;
        Buffer buffer(even_fabric(nodes, 400'000), options,
                      {.nodes = nodes, .teams = teams, .is_recursive = is_recursive});
        for (int call = 0; call < 3; ++call) {
          ASSERT_EQ(buffer.all_reduce(), "") << nodes << " nodes, " << teams << " teams";
        }
      }
    }
  }
}

TEST(SparseOnANetwork, ANodeThatStandsStillDelaysAndHarmsNothing) {
  Buffer buffer(even_fabric(6, 400'000), {}, {.nodes = 6});
  ASSERT_EQ(buffer.all_reduce(), "");
  const std::uint64_t now = buffer.network.now_ns();
  buffer.network.at(now + 200'000, [&] { buffer.network.stop(3); });
  buffer.network.at(now + 50'000'000, [&] { buffer.network.resume(3); });
  ASSERT_EQ(buffer.all_reduce(), "");
  EXPECT_GT(buffer.network.now_ns(), now + 50'000'000);
}

// 4 MiB of gradients in chunks of 256 KiB. The model leaves out what waits for what.
TEST(SparseOnANetwork, TakesAsLongAsPredicted) {
  Fabric racks = even_fabric(8, 400'000);
  racks.racks = {{"left", 50'000, 50'000}, {"right", 50'000, 50'000}};
  for (int i = 4; i < 8; ++i) racks.nodes[static_cast<std::size_t>(i)].rack = 1;
  for (const Fabric& fabric : {even_fabric(8, 400'000), even_fabric(7, 100'000), racks}) {
    for (const int teams : {1, 2}) {
      if (fabric.size() % teams != 0) continue;
      const Case c{.nodes = fabric.size(),
                   .teams = teams,
                   .calls = 16,
                   .elements = 1 << 16,
                   .density = 0.01};
      Buffer buffer(fabric, {}, c);
      ASSERT_EQ(buffer.all_reduce(), "");
      const std::uint64_t before_ns = buffer.network.now_ns();
      ASSERT_EQ(buffer.all_reduce(), "");
      const double us = static_cast<double>(buffer.network.now_ns() - before_ns) / 1000;
      sparse::SparsePlan plan{teams, sparse::Across::kGathered, {}};
      for (int i = 0; i < c.nodes; ++i) plan.node_at.push_back(i);
      const double predicted_us =
          sparse::predict(fabric, plan, c.density, c.elements * c.calls, c.elements, {}).total_us;
      EXPECT_GT(us, 0.6 * predicted_us) << c.nodes << " nodes, " << teams << " teams";
      EXPECT_LT(us, 1.7 * predicted_us) << c.nodes << " nodes, " << teams << " teams";
      std::printf("%d nodes, %d teams, %zu racks: %.0f us, predicted %.0f us\n", c.nodes, teams,
                  fabric.racks.size(), us, predicted_us);
    }
  }
}

}  // namespace
}  // namespace riffle::sparse_test
