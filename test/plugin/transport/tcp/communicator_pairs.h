// Communicators of two nodes, both in this process, opened when the test says so.
#pragma once

#include <array>
#include <random>

#include "test/plugin/transport/transport_harness.h"

namespace riffle {

// One side of a communicator of two, opened when the test says so.
struct PairSide {
  std::shared_ptr<Reactor> reactor = Reactor::acquire(settings());
  RecordingSink sink;
  std::unique_ptr<TransportMesh> mesh;

  void make(std::unique_ptr<TransportListener> listener, const std::vector<HandleContent>& handles,
            int rank, const TransportOptions& options, const MeshOptions& times) {
    reactor->run_and_wait([&] {
      mesh =
          transport(options)->make_mesh(*reactor, std::move(listener), handles, rank, times, &sink);
    });
  }
  void open(int peer) {
    reactor->run_and_wait([&] { mesh->open(peer); });
  }
  void send(int peer, std::uint64_t number, std::span<const std::byte> payload) {
    reactor->run_and_wait(
        [&] { mesh->send(peer, numbered(number, payload.size()), payload, number, 0); });
  }
  bool is_open() {
    return sink.wait([](auto& s) { return s.opened_.size() == 1; });
  }
  void close() {
    reactor->run_and_wait([&] {
      if (mesh != nullptr) mesh->close();
      mesh.reset();
    });
  }
  void abort() {
    reactor->run_and_wait([&] { mesh.reset(); });
  }
  ~PairSide() { close(); }
};

inline TransportOptions of_streams(int streams) {
  TransportOptions options = settings();
  options.streams = streams;
  return options;
}

// A communicator of two nodes. Node 1 is the one that connects.
struct CommunicatorPair {
  std::array<PairSide, 2> sides;
  explicit CommunicatorPair(const TransportOptions& options = of_streams(1), MeshOptions of_0 = {},
                            MeshOptions of_1 = {}, bool knows_secret = true) {
    std::vector<std::unique_ptr<TransportListener>> listeners;
    std::vector<HandleContent> handles;
    for (int r : {0, 1}) {
      (void)r;
      listeners.push_back(std::move(*transport(options)->listen(0, 0)));
      handles.push_back(*decode(listeners.back()->handle()));
    }
    sides[0].make(std::move(listeners[0]), handles, 0, options, of_0);
    if (!knows_secret) handles[0].secret[3] ^= 1;
    sides[1].make(std::move(listeners[1]), handles, 1, options, of_1);
  }
  void open() {
    for (int r : {0, 1}) sides[static_cast<std::size_t>(r)].open(1 - r);
  }
  bool is_open() { return sides[0].is_open() && sides[1].is_open(); }
  // Both ways, so that each side has heard the other.
  void talk(std::span<const std::byte> payload = {}, std::size_t frames = 1) {
    const std::array had = {sides[0].sink.frames_.size(), sides[1].sink.frames_.size()};
    for (std::size_t i = 0; i < frames; ++i) {
      for (int r : {0, 1}) sides[static_cast<std::size_t>(r)].send(1 - r, i, payload);
    }
    for (std::size_t r : {0u, 1u}) {
      EXPECT_TRUE(sides[r].sink.wait([&](auto& s) { return s.frames_.size() == had[r] + frames; }));
      for (std::size_t i = had[r]; i < had[r] + frames; ++i) {
        EXPECT_TRUE(std::ranges::equal(sides[r].sink.frames_.at(i).payload, payload));
      }
      EXPECT_TRUE(sides[r].sink.lost_.empty());
    }
  }
  void close() {
    for (PairSide& side : sides) side.close();
  }
};

inline std::vector<std::byte> random_payload(std::size_t size) {
  std::mt19937 random(11);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// The first of all, which has connected.
inline std::unique_ptr<CommunicatorPair> first_pair(
    const TransportOptions& options = of_streams(1)) {
  EXPECT_TRUE(eventually([] { return connected_sockets() == 0; }));
  auto pair = std::make_unique<CommunicatorPair>(options);
  pair->open();
  EXPECT_TRUE(pair->is_open());
  pair->talk();
  return pair;
}

}  // namespace riffle
