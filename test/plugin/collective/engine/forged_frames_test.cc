// A peer that sends what it has sent already, or a sum where none can be: the call fails by that
// peer's name. Were the frame taken, the sum would count as done with parts of it missing, or
// memory be written that is not the call's, or no longer.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/engine/wire.h"
#include "test/plugin/collective/engine/engine_harness.h"

namespace riffle::forged_frames_test {
namespace {

using testing::EngineCluster;
using testing::EngineNode;

// What comes before a frame, from the same peer; empty: nothing.
using Forges = std::function<std::optional<FrameHeader>(int peer, const FrameHeader&)>;

// Between the network and a node: the first frame that `forges` names one for comes behind that.
class Forger final : public FrameSink {
 public:
  Forger(EngineNode& node, Forges forges) : node_(node), forges_(std::move(forges)) {}
  bool has_forged = false;

  void opened(int peer) override { node_.opened(peer); }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    Result<std::byte*> place = node_.get_receive_buffer(peer, header);
    if (!place || has_forged || header.type != FrameType::kData) return place;
    const std::optional<FrameHeader> forged = forges_(peer, header);
    if (!forged) return place;
    has_forged = true;
    const Result<std::byte*> other = node_.get_receive_buffer(peer, *forged);
    if (!other) {
      node_.lost(peer, other.status());
    } else {
      arrived(peer, *forged, *other);
    }
    return place;
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
    node_.arrived(peer, header, payload);
  }
  void sent(int peer, std::uint64_t cookie) override { node_.sent(peer, cookie); }
  void departed(int peer) override { node_.departed(peer); }
  void lost(int peer, const Status& why) override { node_.lost(peer, why); }

 private:
  EngineNode& node_;
  const Forges forges_;
};

constexpr int kNodes = 3;
constexpr std::uint64_t kBlock = 1000;  // of a reduce-scatter, in elements

// What node 0 says at the end of a call.
std::string end_of(Collective collective, const Forges& forges) {
  const Group all{Pattern::kDirect, {0, 1, 2}, {0, kShareUnits / 3, kShareUnits / 2, kShareUnits}};
  EngineCluster cluster({{{kNodes, {{{all}}}}}, "direct"}, {}, 1);
  Forger forger(*cluster.nodes[0], forges);
  cluster.network.set_sink(0, &forger);
  const std::uint64_t count = collective == Collective::kAllReduce ? 50'000 : kNodes * kBlock;
  std::vector<std::vector<float>> data(kNodes, std::vector<float>(count, 1.0F));
  std::vector<std::vector<float>> results = data;
  std::vector<Operation> operations(kNodes);
  for (std::size_t r = 0; r < kNodes; ++r) {
    Operation& o = operations[r];
    o.collective = collective;
    o.count = count;
    o.block = collective == Collective::kAllReduce ? 0 : kBlock;
    o.send = reinterpret_cast<const std::byte*>(data[r].data());
    o.recv = reinterpret_cast<std::byte*>(results[r].data());
    o.state = Operation::State::kRunning;
    cluster.nodes[r]->engine.submit(&o);
  }
  while (cluster.nodes[0]->error && cluster.step()) {
  }
  EXPECT_TRUE(forger.has_forged);
  EXPECT_NE(operations[0].state, Operation::State::kDone);
  return cluster.error();
}

std::string end_of_repeated(bool is_final) {
  return end_of(Collective::kAllReduce,
                [is_final](int, const FrameHeader& header) -> std::optional<FrameHeader> {
                  if (frame_of<DataFrame>(header).is_final != is_final) return std::nullopt;
                  return header;
                });
}

TEST(ForgedFrames, AFinalSumIsRefused) {
  const std::string end = end_of_repeated(true);
  EXPECT_NE(end.find("that sum came already"), std::string::npos) << end;
}

TEST(ForgedFrames, APartialSumIsRefused) {
  const std::string end = end_of_repeated(false);
  EXPECT_NE(end.find("that partial sum came already"), std::string::npos) << end;
}

// Its memory is the own block alone.
TEST(ForgedFrames, AReduceScatterTakesNoFinalSum) {
  const std::string end =
      end_of(Collective::kReduceScatter, [](int peer, const FrameHeader& header) {
        auto frame = frame_of<DataFrame>(header);
        frame.is_final = true;
        frame.offset = kBlock * static_cast<std::uint64_t>(peer);
        return std::optional(header_of(frame, kBlock * sizeof(float)));
      });
  EXPECT_NE(end.find("no final sums"), std::string::npos) << end;
}

}  // namespace
}  // namespace riffle::forged_frames_test
