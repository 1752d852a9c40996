// Meshes of nodes that encrypt: frames arrive, nodes that differ say how at once, and a node with
// another key does not connect.
#include <random>

#include "plugin/transport/crypto/cipher.h"
#include "plugin/transport/crypto/key_file.h"
#include "test/plugin/transport/transport_harness.h"
#include "test/sanitized.h"

namespace riffle::encrypted_mesh_test {
namespace {

EncryptionOptions with_key(std::uint8_t fill) {
  const std::vector<std::uint8_t> content(32, fill);
  return {.is_on = true, .key = std::make_shared<const PresharedKey>(content)};
}

// Nodes with options of their own.
struct Mesh {
  explicit Mesh(const std::vector<EncryptionOptions>& encryption) {
    std::vector<std::unique_ptr<TransportListener>> listeners;
    std::vector<HandleContent> handles;
    for (const EncryptionOptions& one : encryption) {
      TransportOptions options = settings();
      options.encryption = one;
      options.streams = 2;
      transports.push_back(transport(options));
      listeners.push_back(std::move(*transports.back()->listen(0, 0)));
      handles.push_back(*decode(listeners.back()->handle()));
    }
    for (std::size_t r = 0; r < encryption.size(); ++r) {
      nodes.push_back(std::make_unique<Node>());
      Node& node = *nodes.back();
      node.reactor->run_and_wait([&] {
        node.mesh = transports[r]->make_mesh(*node.reactor, std::move(listeners[r]), handles,
                                             static_cast<int>(r), {}, &node.sink);
        for (int peer = 0; peer < node.mesh->size(); ++peer) {
          if (peer != static_cast<int>(r)) node.mesh->open(peer);
        }
      });
    }
  }
  std::vector<std::shared_ptr<const Transport>> transports;
  std::vector<std::unique_ptr<Node>> nodes;
};

TEST(EncryptedMesh, BringsFramesWithCiphersThatDiffer) {
  const EncryptionOptions chacha = {.is_on = true, .ciphers = set_of(Cipher::kChaCha20Poly1305)};
  Mesh mesh({{.is_on = true}, chacha, {.is_on = true}});
  std::vector<std::byte> payload(300'000);
  std::mt19937 random(3);
  for (std::byte& b : payload) b = static_cast<std::byte>(random());
  for (auto& node : mesh.nodes) {
    ASSERT_TRUE(node->sink.wait([](auto& s) { return s.opened_.size() == 2; }));
  }
  constexpr std::size_t kFrames = 40;
  for (int from = 0; from < 3; ++from) {
    for (std::size_t i = 0; i < kFrames; ++i) {
      const int to = (from + 1 + static_cast<int>(i % 2)) % 3;
      const auto part = std::span(payload).first(random() % payload.size());
      mesh.nodes[static_cast<std::size_t>(from)]->send(to, numbered(i, part.size()), part);
    }
  }
  for (auto& node : mesh.nodes) {
    ASSERT_TRUE(node->sink.wait([](auto& s) { return s.frames_.size() == kFrames; }));
    for (const auto& f : node->sink.frames_) {
      EXPECT_TRUE(std::equal(f.payload.begin(), f.payload.end(), payload.begin()));
    }
    EXPECT_TRUE(node->sink.lost_.empty());
  }
}

TEST(EncryptedMesh, StreamsThatAreAddedLaterAreEncryptedToo) {
  Mesh mesh({with_key(1), with_key(1)});
  for (auto& node : mesh.nodes) {
    ASSERT_TRUE(node->sink.wait([](auto& s) { return s.opened_.size() == 1; }));
    node->reactor->run_and_wait([&] { node->mesh->set_peer_weights(std::vector<int>{3, 3}); });
  }
  const std::vector<std::byte> payload(200'000, std::byte{5});
  for (std::size_t i = 0; i < 100; ++i) {
    for (int from : {0, 1}) {
      mesh.nodes[static_cast<std::size_t>(from)]->send(1 - from, numbered(i, payload.size()),
                                                       payload);
    }
  }
  for (auto& node : mesh.nodes) {
    EXPECT_TRUE(node->sink.wait([](auto& s) { return s.frames_.size() == 100; }));
    EXPECT_TRUE(node->sink.lost_.empty());
  }
}

// Every node knows all handles, so none waits for a timeout.
TEST(EncryptedMesh, ANodeThatDiffersIsNamedByAllAtOnce) {
  const std::uint64_t begin = Reactor::now_ns();
  Mesh mesh({{.is_on = true}, {}, {.is_on = true}});
  const std::string plain = "RIFFLE_ENCRYPT=0", sealed = "RIFFLE_ENCRYPT=1 without RIFFLE_KEY_FILE";
  const auto expect = [&](std::size_t at, int peer, const std::string& message) {
    RecordingSink& sink = mesh.nodes[at]->sink;
    EXPECT_TRUE(sink.wait([&](auto& s) { return s.lost_.contains(peer); }));
    EXPECT_NE(sink.lost_[peer].find(message), std::string::npos) << sink.lost_[peer];
  };
  expect(0, 1, "it has " + plain + ", this node has " + sealed);
  expect(2, 1, "it has " + plain + ", this node has " + sealed);
  expect(1, 0, "it has " + sealed + ", this node has " + plain);
  expect(1, 2, "it has " + sealed + ", this node has " + plain);
  if (!kIsSanitized) {
    EXPECT_LT(Reactor::now_ns() - begin, 2'000'000'000u);
  }
}

TEST(EncryptedMesh, AnotherKeyIsRefused) {
  ::testing::internal::CaptureStderr();
  Mesh mesh({with_key(1), with_key(2)});
  RecordingSink& connector = mesh.nodes[1]->sink;
  EXPECT_TRUE(connector.wait([](auto& s) { return s.lost_.contains(0); }));
  EXPECT_NE(connector.lost_[0].find("another key in RIFFLE_KEY_FILE"), std::string::npos)
      << connector.lost_[0];
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("its RIFFLE_KEY_FILE holds another key"), std::string::npos) << log;
}

// NET knows two ends only: the one that connects has an error, the other one a line in its log.
TEST(EncryptedMesh, BothEndsOfNetSayThatTheyDiffer) {
  TransportOptions options = settings();
  const auto plain = transport(options);
  options.encryption.is_on = true;
  const auto sealed = transport(options);
  auto listener = std::move(*plain->listen(0, 0));
  const HandleContent to = listener->content();
  const auto reactor = Reactor::acquire(options);
  std::unique_ptr<PendingLink> accepting, connecting;
  std::promise<std::string> outcome;
  ::testing::internal::CaptureStderr();
  reactor->run_and_wait([&] {
    accepting = plain->accept(*reactor, std::move(listener), "sender", [](auto) { ADD_FAILURE(); });
    connecting = std::move(*sealed->connect(*reactor, to, 0, "receiver", [&](auto linked) {
      outcome.set_value(linked.status().message());
    }));
  });
  auto future = outcome.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  const std::string error = future.get();
  EXPECT_NE(error.find("cannot connect to 127.0.0.1:"), std::string::npos) << error;
  EXPECT_NE(error.find("it has RIFFLE_ENCRYPT=0, this node has RIFFLE_ENCRYPT=1"),
            std::string::npos)
      << error;
  std::string log;
  EXPECT_TRUE(eventually([&] {
    reactor->run_and_wait([] {});
    log += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return log.find("dropped a connection from 127.0.0.1:") != std::string::npos;
  }));
  ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("it has RIFFLE_ENCRYPT=1 without RIFFLE_KEY_FILE, this node has "
                     "RIFFLE_ENCRYPT=0"),
            std::string::npos)
      << log;
  reactor->run_and_wait([&] {
    connecting.reset();
    accepting.reset();
  });
}

}  // namespace
}  // namespace riffle::encrypted_mesh_test
