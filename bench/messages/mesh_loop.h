// Frames through the plugin's own TCP mesh: one node sends, on one reactor, to peers on another, a
// link of one stream to each. As the engine does, the sender has at most so many bytes on their way
// to all peers, and hands out the next frame when one has left. Where only one waits for a peer at
// once, each has a system call of its own.
#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "bench/messages/traffic.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle::bench {

class MeshLoop {
 public:
  static Result<std::unique_ptr<MeshLoop>> connect(std::size_t peers, bool encrypts);
  ~MeshLoop();
  Result<Use> run(const Traffic& traffic);

 private:
  // Of one node; counts what happened to it.
  class Sink;
  struct Node {
    std::shared_ptr<Reactor> reactor;
    std::unique_ptr<Sink> sink;
    std::unique_ptr<TransportMesh> mesh;
  };

  MeshLoop() = default;
  Status open(std::size_t peers, bool encrypts);
  void send_next(std::size_t peer);
  void count(std::size_t* counter);
  void fail(const Status& why);
  template <class Condition>
  Status wait(Condition condition, const char* what);

  std::vector<Node> nodes_;                      // the first one sends
  std::array<double, 2> start_ns_{}, end_ns_{};  // of the sending thread, of the receiving one
  std::vector<std::byte> source_;
  Traffic traffic_;
  std::vector<std::size_t> unsent_;  // by peer; the sender's thread

  std::mutex mutex_;  // what the caller's thread sees as well
  std::condition_variable changed_;
  std::size_t opened_ = 0;
  bool is_sent_ = false, is_received_ = false;
  Status status_;
  std::size_t sent_ = 0, received_ = 0;  // frames; each of one thread
};

}  // namespace riffle::bench
