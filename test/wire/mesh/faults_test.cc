// A library that fails, lies or hangs under a mesh: an error on both sides that names the library,
// the call, the peer and the library's code, once, and in time.
#include <cstdlib>

#include "test/wire/mesh/library_harness.h"

namespace riffle::library_faults_test {
namespace {

using library_test::behave;
using library_test::never;
using library_test::probe;
using library_test::random_bytes;

class LibraryFaults : public library_test::LibraryMeshTest {
 protected:
  static std::vector<std::unique_ptr<Node>> start(int size, const MeshSettings& settings) {
    Listeners all(size);
    std::vector<std::unique_ptr<Node>> nodes;
    for (int r = 0; r < size; ++r) {
      nodes.push_back(std::make_unique<Node>());
      nodes.back()->start(std::move(all.listeners[static_cast<std::size_t>(r)]), all.handles, r,
                          settings);
    }
    return nodes;
  }
  // What both nodes say of each other.
  static std::string losses(std::vector<std::unique_ptr<Node>>& nodes) {
    std::string all;
    for (auto& node : nodes) {
      EXPECT_TRUE(node->sink.wait([](auto& s) { return !s.lost_.empty(); }));
      for (const auto& [peer, why] : node->sink.lost_) all += why + "\n";
    }
    return all;
  }
  static void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in:\n" << text;
    }
  }
};

TEST_F(LibraryFaults, AConnectThatNeverCompletesIsNamedAfterItsTime) {
  behave(never("connect"));
  auto nodes = start(2, {.connect_timeout_ns = 300'000'000});
  expect_parts(losses(nodes), {"libnccl-net-strict12.so (v12): connect to node ",
                               "did not complete within RIFFLE_CONNECT_TIMEOUT"});
}

TEST_F(LibraryFaults, AnAcceptThatNeverCompletesIsNamedAfterItsTime) {
  behave(never("accept"));
  auto nodes = start(2, {.connect_timeout_ns = 300'000'000});
  expect_parts(losses(nodes), {"accept from node ", " did not complete"});
}

TEST_F(LibraryFaults, AReceiveThatIsNeverTakenIsNamedAfterItsTime) {
  behave(never("irecv"));
  auto nodes = start(2, {.connect_timeout_ns = 300'000'000});
  expect_parts(losses(nodes), {"irecv from node ", " took no receive"});
}

TEST_F(LibraryFaults, MemoryThatIsNotRegisteredIsNamed) {
  behave({.refuse_mr = 2});
  auto nodes = start(2, {});
  expect_parts(losses(nodes), {"regMr of ", " bytes for node ", " returned 2 (system error)"});
}

TEST_F(LibraryFaults, DevicesThatDriveTransfersThemselvesAreRefused) {
  behave({.offload = true});
  const auto listener = transport()->listen(0, 0);
  ASSERT_FALSE(listener);
  expect_parts(listener.status().message(),
               {"libnccl-net-strict12.so (v12): netDeviceType of device 0 is 1"});
}

TEST_F(LibraryFaults, EncryptionIsRefused) {
  TransportOptions options = settings();
  options.encryption.is_on = true;
  const auto listener = transport(options)->listen(0, 0);
  ASSERT_FALSE(listener);
  expect_parts(listener.status().message(), {"RIFFLE_ENCRYPT=1"});
}

TEST_F(LibraryFaults, ASendThatNeverCompletesIsNamedAfterItsTime) {
  for (const char* const function : {"isend", "test"}) {
    auto nodes = start_mesh(2, {.peer_timeout_ns = 1'000'000'000});
    behave(never(function));
    nodes[0]->send(1, numbered(1), {});
    const std::string text = losses(nodes);
    expect_parts(text, {"RIFFLE_PEER_TIMEOUT"});
    // The side whose time is up first names its call to both.
    EXPECT_TRUE(text.find("isend to node 1 (") != std::string::npos ||
                text.find("irecv from node 0 (") != std::string::npos)
        << text;
    behave({});
  }
}

TEST_F(LibraryFaults, AnErrorOfAnyCallIsNamedOnBothSides) {
  for (int call = 1; call < 60; call += 7) {
    auto nodes = start_mesh(2, {});
    behave({.fail_at = call});
    const auto payload = random_bytes(1'000'000, 1);
    // On a busy machine one takes fewer calls than that, and a link where nothing moves makes none.
    for (int i = 1; i <= 8; ++i) nodes[0]->send(1, numbered(i, payload.size()), payload);
    expect_parts(losses(nodes),
                 {"libnccl-net-strict12.so (v12): ", " node ", " returned 2 (system error)"});
    behave({});
  }
}

TEST_F(LibraryFaults, AWrongSizeIsAnError) {
  for (const int lie : {1, -1, 1'000'000, -1'000'000}) {
    auto nodes = start_mesh(2, {});
    behave({.lie = lie});
    nodes[0]->send(1, numbered(1, 0), {});
    ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return !s.lost_.empty(); }));
    const bool is_possible = std::abs(lie) == 1;
    expect_parts(losses(nodes), {"libnccl-net-strict12.so (v12): ",
                                 is_possible ? " bytes came from node 0" : "possible are 1.."});
    EXPECT_TRUE(nodes[1]->sink.frames_.empty());
    behave({});
  }
}

// What lies there then is the message of a round of receives before, whose frame would do.
TEST_F(LibraryFaults, AMessageThatIsToldOfBeforeItIsThereIsAnError) {
  auto nodes = start_mesh(2, {});
  constexpr std::uint64_t kFrames = 100;
  for (std::uint64_t i = 0; i < kFrames; ++i) nodes[0]->send(1, numbered(i), {});
  ASSERT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == kFrames; }));
  behave({.early = true});
  nodes[0]->send(1, numbered(kFrames), {});
  expect_parts(losses(nodes), {"libnccl-net-strict12.so (v12): what came is not message "});
  EXPECT_LE(nodes[1]->sink.frames_.size(), kFrames + 1);
}

// The strict library aborts if a request that was done, or failed, is tested again.
class ThrowingSink : public RecordingSink {
 public:
  std::atomic<int> failures{0};
  void arrived(int, const FrameHeader&, std::byte*) override { throw std::bad_alloc(); }
  void failed(const Status&) override { ++failures; }
};

TEST_F(LibraryFaults, WhatIsThrownReachesTheOwnerAndNothingMoreArrives) {
  Listeners all(2);
  Node sender;
  auto reactor = Reactor::acquire(settings());
  ThrowingSink sink;
  std::unique_ptr<TransportMesh> mesh;
  reactor->run_and_wait([&] {
    mesh = transport()->make_mesh(*reactor, std::move(all.listeners[1]), all.handles, 1, {}, &sink);
    mesh->open(0);
  });
  sender.start(std::move(all.listeners[0]), all.handles, 0, {});
  ASSERT_TRUE(sender.sink.wait([](auto& s) { return s.opened_.size() == 1; }));
  for (std::uint64_t i = 0; i < 5; ++i) sender.send(1, numbered(i), {});
  ASSERT_TRUE(eventually([&] { return sink.failures > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(sink.failures, 1);
  reactor->run_and_wait([&] { mesh.reset(); });
  ASSERT_TRUE(sender.sink.wait([](auto& s) { return !s.lost_.empty(); }));
}

// Runs after the strict library has torn down, as it was registered before: meanwhile the thread
// goes on, and the library aborts where it is called.
std::atomic<bool> exits_slowly{false};
const bool is_registered = std::atexit([] {
                             if (exits_slowly) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(200));
                             }
                           }) == 0;

TEST_F(LibraryFaults, WhileTheProcessExitsTheLibraryIsNotCalled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ASSERT_TRUE(is_registered);
  const auto exit_in_the_middle = [] {
    static auto& nodes = *new std::vector<std::unique_ptr<Node>>(start_mesh(2, {}));
    behave(never("test"));
    nodes[0]->send(1, numbered(1), {});
    exits_slowly = true;
    std::exit(0);
  };
  EXPECT_EXIT(exit_in_the_middle(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace riffle::library_faults_test
