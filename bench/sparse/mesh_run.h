// Runs schemes between processes, over the plugin's own TCP mesh (plugin/transport/tcp/tcp_mesh.h):
// the same connections, congestion control and streams as its all-reduces. Everything but load()
// happens on the mesh's thread, without hand-overs: selecting what goes out first, too.
//
//   load(calls); ...; run(); replay();
//
// Several schemes, each for a chunk of its own, run side by side ("lanes"): the first kLanes, and
// another whenever one has ended, as the plugin has so many chunks under way. All workers must have
// the same ones in the same order.
//
// replay() sends what run() sent, once more, in the same rounds, each as soon as what the round
// before had to wait for is there; nothing is read, added or selected. What it takes is the
// network's part of what run() takes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "bench/sparse/scheme.h"
#include "lab/nccl_host/bootstrap.h"
#include "plugin/transport/base/transport.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle::bench {

struct RunTimes {
  std::int64_t start_ns = 0, end_ns = 0;  // of the steady clock
  double compute_us = 0;                  // processor time that the scheme took meanwhile
};

class MeshRun final : public FrameSink, private Reactor::WakeHandler {
 public:
  // Collective. Waits until all links are up.
  static Result<std::unique_ptr<MeshRun>> connect(host::Bootstrap& bootstrap);
  ~MeshRun() override;

  static constexpr std::size_t kLanes = 8;

  struct Call {  // both must live until after replay()
    Scheme* scheme = nullptr;
    std::span<const float> gradient;
  };
  void load(const std::vector<Call>& calls);
  // Returns when the results are there and all that was sent is out of our hands.
  Result<RunTimes> run() { return go(false); }
  Result<RunTimes> replay() { return go(true); }

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct Logged {
    Round round;
    std::vector<Bytes> messages;  // may be more than round.to: memory to use again
  };
  struct Incoming {
    Bytes bytes;
    std::size_t received = 0;
    bool is_whole = false;
  };
  struct Wire {                  // of one lane, to and from one peer
    std::uint64_t next_out = 0;  // number of the next message to it
    std::uint64_t first_in = 0;  // number of in.front()
    std::deque<Incoming> in;
  };
  struct Peer {
    std::deque<Wire> wires;  // by lane; they stay where they are, as the mesh writes into them
    std::vector<Bytes> spare;
  };
  struct Lane {
    Call call;
    std::vector<Logged> log;
    std::size_t logged = 0;  // rounds of log that count
    std::size_t at = 0;
    bool is_ahead = false;        // the messages of the round before `at` wait to be taken
    std::size_t unconfirmed = 0;  // messages
    bool is_started = false;
  };

  explicit MeshRun(host::Bootstrap& bootstrap);
  Status open(host::Bootstrap& bootstrap);
  Result<RunTimes> go(bool is_replay);
  Wire& wire(int peer, std::size_t lane);
  void begin(Lane& lane);
  void log_round(Lane& lane);
  void send_round(std::size_t lane);
  void start_lanes();
  void advance(std::size_t lane);
  bool is_round_over(std::size_t lane);
  void finish_round(std::size_t lane);
  void take(std::size_t lane, std::size_t round);
  void end_if_all_is_sent();
  void fail(const Status& why);

  void on_wake() override;
  void opened(int peer) override;
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;
  void departed(int peer) override;
  void lost(int peer, const Status& why) override;

  std::shared_ptr<Reactor> reactor_;
  std::unique_ptr<TransportMesh> mesh_;
  std::vector<Peer> peers_;  // by rank
  int links_ = 0;

  std::vector<Lane> lanes_;  // more than count_: memory to use again
  std::size_t count_ = 0;    // of this run
  std::size_t started_ = 0, ended_ = 0;
  bool is_running_ = false, is_replay_ = false;
  std::size_t unsent_ = 0;  // frames
  RunTimes times_;

  std::mutex mutex_;  // what both threads see
  std::condition_variable changed_;
  bool is_over_ = false;
  Status status_;
};

}  // namespace riffle::bench
