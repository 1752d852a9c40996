// plugin/collective/engine/send_window.h on a mesh that only writes down what it is given.
#include "plugin/collective/engine/send_window.h"
#include "plugin/transport/base/mesh.h"

#include <gtest/gtest.h>

#include <array>

namespace riffle::send_window_test {
namespace {

class NotedMesh final : public Mesh {
 public:
  int rank() const override { return 0; }
  int size() const override { return 4; }
  void open(int) override {}
  void send(int peer, const FrameHeader& header, std::span<const std::byte>, std::uint64_t,
            std::uint64_t priority) override {
    peers.push_back(peer);
    priorities.push_back(priority);
    lengths.push_back(header.length);
  }
  void dismiss(int /*peer*/) override {}
  void abort() override {}
  std::uint64_t now_ns() const override { return 0; }

  std::vector<int> peers;
  std::vector<std::uint64_t> priorities;
  std::vector<std::size_t> lengths;
};

class SendWindowTest : public ::testing::Test {
 protected:
  void send(int peer, std::size_t bytes, std::uint64_t priority) {
    FrameHeader header;
    header.length = static_cast<std::uint32_t>(bytes);
    window_.send(peer, header, std::span(data_).first(bytes), 0, priority);
  }
  SendWindowTest() { window_.reserve(16); }

  std::array<std::byte, 1000> data_{};
  NotedMesh mesh_;
  SendWindow window_{&mesh_};
};

TEST_F(SendWindowTest, HandsOverWhatFitsAndThenTheOldestChunkFirst) {
  window_.set_bytes(200);
  send(1, 100, 7);
  send(2, 100, 8);
  send(3, 100, 9);  // no room
  send(1, 100, 4);
  send(2, 100, 4);
  EXPECT_EQ(mesh_.peers, (std::vector<int>{1, 2}));
  window_.sent(100);
  window_.sent(100);
  EXPECT_EQ(mesh_.priorities, (std::vector<std::uint64_t>{7, 8, 4, 4}));
  EXPECT_EQ(mesh_.peers, (std::vector<int>{1, 2, 1, 2}));  // equal ones in the order of the calls
  window_.sent(100);
  EXPECT_EQ(mesh_.priorities.back(), 9u);
}

TEST_F(SendWindowTest, OneFrameGoesThoughItIsLargerThanTheWindow) {
  window_.set_bytes(0);
  send(1, 1000, 1);
  send(2, 1000, 2);
  EXPECT_EQ(mesh_.lengths.size(), 1u);
  window_.sent(1000);
  EXPECT_EQ(mesh_.lengths.size(), 2u);
}

TEST_F(SendWindowTest, FramesWithoutPayloadPassWhileThereIsRoom) {
  window_.set_bytes(100);
  for (int i = 0; i < 5; ++i) send(1, 0, 1);
  send(1, 100, 1);
  EXPECT_EQ(mesh_.lengths.size(), 6u);
  send(1, 0, 1);  // behind the full window, like any other
  EXPECT_EQ(mesh_.lengths.size(), 6u);
  window_.sent(100);
  EXPECT_EQ(mesh_.lengths.size(), 7u);
}

TEST_F(SendWindowTest, WithoutRoomToWaitFramesGoAtOnce) {
  window_.set_bytes(1);
  for (int i = 0; i < 20; ++i) send(1, 1, static_cast<std::uint64_t>(i));
  EXPECT_EQ(mesh_.priorities, (std::vector<std::uint64_t>{0, 17, 18, 19}));
  for (int i = 0; i < 20; ++i) window_.sent(1);
  EXPECT_EQ(mesh_.lengths.size(), 20u);
}

TEST_F(SendWindowTest, ForgetsWhatWaits) {
  window_.set_bytes(1);
  send(1, 1, 1);
  send(2, 1, 2);
  window_.clear();
  window_.sent(1);
  EXPECT_EQ(mesh_.peers, (std::vector<int>{1}));
}

}  // namespace
}  // namespace riffle::send_window_test
