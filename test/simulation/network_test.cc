// The simulated network against cases that can be worked out on paper.
#include "plugin/transport/base/mesh.h"
#include "plugin/transport/sim/sim_network.h"

#include <gtest/gtest.h>

#include <map>

#include "test/numbered_frame.h"

namespace riffle::sim::network_test {
namespace {

constexpr std::int64_t kGigabit = 1'000'000;  // kbit/s: 125 bytes per microsecond
constexpr std::uint64_t kBytes = 1'000'000 - kFrameHeaderBytes;
constexpr std::uint64_t kAloneNs = 8'000'000;  // one frame of that size alone
constexpr std::uint64_t kLatencyNs = 50'000;

class Recorder final : public FrameSink {
 public:
  explicit Recorder(SimNetwork* network, int rank) : network_(network), room_(kMaxFramePayload) {
    network->set_sink(rank, this);
  }
  void opened(int peer) override { opened_ns[peer] = network_->now_ns(); }
  Result<std::byte*> get_receive_buffer(int, const FrameHeader&) override { return room_.data(); }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
    arrived_ns[{peer, number_of(header)}] = network_->now_ns();
    order.push_back(number_of(header));
    if (header.length > 0) last_byte = payload[header.length - 1];
  }
  void sent(int, std::uint64_t cookie) override { sent_ns[cookie] = network_->now_ns(); }
  void departed(int peer) override { departed_ns[peer] = network_->now_ns(); }
  void lost(int peer, const Status& why) override {
    EXPECT_EQ(lost_ns.count(peer), 0u);
    lost_ns[peer] = network_->now_ns();
    EXPECT_FALSE(why.is_ok());
  }

  std::map<int, std::uint64_t> opened_ns, departed_ns, lost_ns;
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> arrived_ns;
  std::map<std::uint64_t, std::uint64_t> sent_ns;
  std::vector<std::uint64_t> order;
  std::byte last_byte{};

 private:
  SimNetwork* network_;
  std::vector<std::byte> room_;
};

class SimNetworkTest : public ::testing::Test {
 protected:
  void start(Fabric fabric, SimOptions options = {}) {
    fabric.latency_us = kLatencyNs / 1000;
    network_ = std::make_unique<SimNetwork>(fabric, options);
    for (int r = 0; r < fabric.size(); ++r) {
      nodes_.push_back(std::make_unique<Recorder>(network_.get(), r));
    }
    network_->open_all();
  }
  void send(int from, int to, std::uint64_t seq, std::size_t bytes = kBytes,
            std::uint64_t priority = 1) {
    network_->mesh(from).send(to, numbered(seq, bytes), {data_.data(), bytes}, seq, priority);
  }
  void run() {
    while (network_->step()) {
    }
  }
  std::uint64_t arrival(int from, int to, std::uint64_t seq) {
    const auto at = nodes_[to]->arrived_ns.find({from, seq});
    return at == nodes_[to]->arrived_ns.end() ? 0 : at->second;
  }

  std::unique_ptr<SimNetwork> network_;
  std::vector<std::unique_ptr<Recorder>> nodes_;
  std::vector<std::byte> data_ = std::vector<std::byte>(kMaxFramePayload, std::byte{7});
};

TEST_F(SimNetworkTest, OneFrameTakesItsTimeAndTheLatency) {
  start(even_fabric(2, kGigabit));
  send(0, 1, 5);
  run();
  EXPECT_EQ(arrival(0, 1, 5), kAloneNs + kLatencyNs);
  EXPECT_EQ(nodes_[0]->sent_ns.at(5), kAloneNs);
  EXPECT_EQ(nodes_[1]->last_byte, std::byte{7});
  EXPECT_DOUBLE_EQ(network_->fluid().out_bytes(0), 1e6);
}

TEST_F(SimNetworkTest, TwoFlowsIntoOneNodeShareAndTheRestGetsTheRest) {
  start(even_fabric(4, kGigabit));
  send(0, 2, 1);
  send(1, 2, 2);
  send(3, 0, 3);  // the other direction: not disturbed
  run();
  EXPECT_EQ(arrival(0, 2, 1), 2 * kAloneNs + kLatencyNs);
  EXPECT_EQ(arrival(1, 2, 2), 2 * kAloneNs + kLatencyNs);
  EXPECT_EQ(arrival(3, 0, 3), kAloneNs + kLatencyNs);
}

TEST_F(SimNetworkTest, AFlowThatEndsLeavesItsShare) {
  start(even_fabric(3, kGigabit));
  send(0, 2, 1);
  send(1, 2, 2);
  send(1, 2, 3);
  run();
  EXPECT_EQ(arrival(0, 2, 1), 2 * kAloneNs + kLatencyNs);
  EXPECT_EQ(arrival(1, 2, 2), 2 * kAloneNs + kLatencyNs);
  EXPECT_EQ(arrival(1, 2, 3), 3 * kAloneNs + kLatencyNs);
}

TEST_F(SimNetworkTest, AnUplinkIsShared) {
  Fabric fabric = even_fabric(6, kGigabit);
  fabric.racks = {{"a", kGigabit / 2, kGigabit}, {"b", 0, 0}};
  for (int n = 3; n < 6; ++n) fabric.nodes[n].rack = 1;
  start(fabric);
  send(0, 3, 1);
  send(1, 4, 2);
  send(2, 0, 3);  // stays in the rack
  send(5, 2, 4);  // comes in by the faster downlink
  run();
  EXPECT_EQ(arrival(0, 3, 1), 4 * kAloneNs + kLatencyNs);
  EXPECT_EQ(arrival(1, 4, 2), 4 * kAloneNs + kLatencyNs);
  EXPECT_EQ(arrival(2, 0, 3), kAloneNs + kLatencyNs);
  EXPECT_EQ(arrival(5, 2, 4), kAloneNs + kLatencyNs);
  EXPECT_DOUBLE_EQ(network_->fluid().up_bytes(0), 2e6);
}

TEST_F(SimNetworkTest, LowerPriorityValuesGoFirstButNothingIsInterrupted) {
  start(even_fabric(2, kGigabit), {.streams = 1});
  send(0, 1, 1, kBytes, 9);
  send(0, 1, 2, kBytes, 5);
  send(0, 1, 3, kBytes, 1);
  send(0, 1, 4, 0, 0);
  run();
  EXPECT_EQ(nodes_[1]->order, (std::vector<std::uint64_t>{1, 4, 3, 2}));
}

TEST_F(SimNetworkTest, FramesOvertakeOnOtherStreamsOnly) {
  for (const int streams : {1, 3}) {
    nodes_.clear();
    start(even_fabric(2, kGigabit), {.jitter_ns = 1'000'000, .streams = streams});
    for (std::uint64_t i = 0; i < 100; ++i) send(0, 1, i, 100);
    run();
    ASSERT_EQ(nodes_[1]->order.size(), 100u);
    EXPECT_EQ(std::is_sorted(nodes_[1]->order.begin(), nodes_[1]->order.end()), streams == 1);
  }
}

TEST_F(SimNetworkTest, RatesChangeInTheMiddle) {
  start(even_fabric(2, kGigabit));
  send(0, 1, 1);
  network_->at(kAloneNs / 2, [this] { network_->set_node_rate(0, kGigabit / 4, kGigabit); });
  run();
  EXPECT_EQ(arrival(0, 1, 1), kAloneNs / 2 + kAloneNs / 2 * 4 + kLatencyNs);
}

TEST_F(SimNetworkTest, ATickCostsLittle) {
  for (const std::uint64_t tick : {1u, 1000u, 10'000u}) {
    nodes_.clear();
    start(even_fabric(3, kGigabit), {.tick_ns = tick});
    for (std::uint64_t i = 0; i < 50; ++i) {
      send(0, 2, i, 10'000 - kFrameHeaderBytes);
      send(1, 2, i, 10'000 - kFrameHeaderBytes);
    }
    run();
    const double exact = 100 * 80'000 + kLatencyNs;
    EXPECT_NEAR(static_cast<double>(arrival(0, 2, 49)), exact, 3.0 * static_cast<double>(tick));
  }
}

TEST_F(SimNetworkTest, ADeadNodeIsLostSoonASilentOneAfterTheTimeout) {
  start(even_fabric(4, kGigabit), {.detect_ns = 1'000'000, .peer_timeout_ns = 2'000'000'000});
  send(0, 1, 1);
  network_->at(kAloneNs / 2, [this] {
    network_->kill(0);
    network_->stop(3);
  });
  run();
  EXPECT_EQ(arrival(0, 1, 1), 0u);
  for (const int r : {1, 2}) {
    EXPECT_LE(nodes_[r]->lost_ns.at(0), kAloneNs / 2 + 1'100'000);
    EXPECT_GE(nodes_[r]->lost_ns.at(3), kAloneNs / 2 + 1'500'000'000);
    EXPECT_LE(nodes_[r]->lost_ns.at(3), kAloneNs / 2 + 2'000'000'000);
  }
  EXPECT_TRUE(nodes_[3]->lost_ns.empty());  // it is stopped
}

TEST_F(SimNetworkTest, AShortPauseOnlyDelays) {
  start(even_fabric(2, kGigabit), {.peer_timeout_ns = 2'000'000'000});
  send(0, 1, 1);
  send(0, 1, 2);
  network_->at(1000, [this] { network_->stop(1); });
  network_->at(500'000'000, [this] { network_->resume(1); });
  run();
  EXPECT_EQ(arrival(0, 1, 1), 500'000'000u);
  // The first fills the kernel of the stopped node, so the second had to wait.
  EXPECT_EQ(arrival(0, 1, 2), 500'000'000 + kAloneNs + kLatencyNs);
  EXPECT_TRUE(nodes_[0]->lost_ns.empty());
}

TEST_F(SimNetworkTest, GoodbyeComesAfterEverythingElse) {
  start(even_fabric(2, kGigabit), {.jitter_ns = 1'000'000, .streams = 3});
  for (std::uint64_t i = 0; i < 20; ++i) send(0, 1, i);
  network_->close(0);
  run();
  EXPECT_EQ(nodes_[1]->order.size(), 20u);
  EXPECT_GE(nodes_[1]->departed_ns.at(0), arrival(0, 1, nodes_[1]->order.back()));
  EXPECT_TRUE(nodes_[1]->lost_ns.empty());
}

TEST_F(SimNetworkTest, NothingIsTouchedAfterAbort) {
  start(even_fabric(2, kGigabit));
  auto memory = std::make_unique<std::vector<std::byte>>(1000);
  FrameHeader header;
  header.length = 1000;
  network_->mesh(0).send(1, header, *memory, 1, 1);
  network_->mesh(0).abort();
  memory.reset();  // asan watches
  run();
  EXPECT_EQ(nodes_[1]->lost_ns.count(0), 1u);
  EXPECT_TRUE(nodes_[0]->lost_ns.empty());
}

TEST_F(SimNetworkTest, TheSameSeedGivesTheSameRun) {
  std::vector<std::uint64_t> ends;
  for (const std::uint64_t seed : {1u, 1u, 2u}) {
    nodes_.clear();
    start(even_fabric(3, kGigabit), {.seed = seed, .jitter_ns = 100'000, .loss_per_frame = 0.2});
    for (std::uint64_t i = 0; i < 30; ++i) send(i % 2, 2, i, 1000);
    run();
    ends.push_back(network_->now_ns());
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_NE(ends[0], ends[2]);
}

}  // namespace
}  // namespace riffle::sim::network_test
