// Communicator: what stands behind one NCCL coll object. It puts bootstrap, engine and mesh
// together on a reactor thread, and hands operations across from NCCL's threads.
//
// Threads: post() and test() from NCCL's progress thread; connect(), fence() and the destructor
// from its service thread; everything marked "reactor" on the reactor thread. Operations cross by
// their atomic state and a lock-free ring; nothing on that way waits or allocates.
//
// Failure: the first problem (a lost peer, a frame that does not fit, a node that left while we
// need it) fails every operation, is logged once and told to all peers, so that every survivor
// hears of it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/collective/bootstrap.h"
#include "plugin/collective/coll_service.h"
#include "plugin/collective/engine.h"
#include "plugin/collective/recording.h"
#include "plugin/transport/reactor.h"
#include "plugin/transport/tcp_mesh.h"

namespace riffle::coll {

class Communicator;

class Request {
 public:
  Operation operation;
  Communicator* owner = nullptr;
  std::size_t bytes = 0;
  const std::byte* send_begin = nullptr;  // what fence() compares
  std::size_t send_bytes = 0;
  const std::byte* recv_begin = nullptr;
  std::size_t recv_bytes = 0;
};

class Communicator final : private MeshSink, private Reactor::WakeHandler {
 public:
  // Null: all nodes agreed to step aside.
  static Result<std::unique_ptr<Communicator>> connect(std::vector<HandleContent> handles, int rank,
                                                       int device, std::uint64_t comm_id,
                                                       std::unique_ptr<TcpListener> listener);
  ~Communicator() override;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // A free request, or null if all are in flight. Filled by the caller, then posted.
  Request* take_request();
  void post(Request* request);
  Result<bool> test(Request* request, int* bytes);
  void fence(const void* base, std::size_t size);

 private:
  Communicator(int rank, int size);

  // Reactor: MeshSink.
  void opened(int peer) override;
  Result<std::byte*> place(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;
  void departed(int peer) override;
  void lost(int peer, const Status& why) override;
  // Reactor: the rest.
  void on_wake() override;
  void start(std::vector<HandleContent> handles, NodeReport report,
             std::unique_ptr<TcpListener> listener, std::uint64_t timeout_ns);
  Status install(const PlanSet& plans, const Verdict& verdict);
  void connect_is_over(Status outcome, bool steps_aside);
  void fail(const std::string& why);
  void tell_everybody(const std::string& why);
  void spread(const std::string& fault, const std::string& why);
  void watch_departed(int peer);
  std::string name_of(int peer) const;
  void stop();

  const int rank_, size_;
  std::shared_ptr<Reactor> reactor_;
  std::vector<std::string> names_;  // of the nodes, for messages

  // Reactor thread only.
  std::unique_ptr<Recording> recording_;  // null: nothing is recorded
  Fabric fabric_;                         // node 0: what was planned for
  std::unique_ptr<TcpMesh> mesh_;
  std::unique_ptr<ControlChannel> control_;
  std::unique_ptr<Bootstrap> bootstrap_;
  std::unique_ptr<Engine> engine_;
  std::vector<bool> departed_;
  std::string left_;  // who said goodbye first
  std::uint64_t timer_ = 0;
  bool has_timer_ = false;
  std::uint64_t fault_timer_ = 0;
  bool has_fault_timer_ = false;

  // Connect's outcome, from the reactor to the waiting service thread.
  struct Outcome;
  std::shared_ptr<Outcome> outcome_;

  // Requests on their way to the reactor: written by NCCL's progress thread, read by the reactor.
  std::array<Request, kMaxRequests> requests_;
  std::array<Request*, kMaxRequests> posted_{};
  std::atomic<std::uint64_t> posted_head_{0}, posted_tail_{0};
  std::size_t next_request_ = 0;

  std::mutex error_mutex_;
  std::string error_;
};

}  // namespace riffle::coll
