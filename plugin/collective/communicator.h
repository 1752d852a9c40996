// Communicator: what stands behind one NCCL coll object. It puts a session (the protocol) and a
// mesh together on a reactor thread, and hands operations across from NCCL's threads.
//
// Threads: post() and test() from NCCL's progress thread; connect(), fence() and the destructor
// from its service thread; everything marked "reactor" on the reactor thread, which for small
// requests is the one that posts and tests them (Reactor::poll). Operations cross by their atomic
// state and a lock-free ring; nothing on that way waits or allocates.
//
// What is thrown on the reactor thread in its work, its mesh's, its timers' or its background's
// ends it: on_failure() aborts the session with the cause, so that every node's job has an error.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/collective/base/background_thread.h"
#include "plugin/collective/base/collective_count.h"
#include "plugin/collective/connect/network_decision.h"
#include "plugin/collective/engine/kept_inputs.h"
#include "plugin/collective/options.h"
#include "plugin/collective/recording.h"
#include "plugin/collective/relaxed/relaxed_calls.h"
#include "plugin/collective/request.h"
#include "plugin/collective/session.h"
#include "plugin/identity/call_identity.h"
#include "plugin/identity/known_lengths.h"
#include "plugin/transport/base/deliveries.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/base/transport.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle::coll {

class Communicator final : private Reactor::WakeHandler {
 public:
  // Null: all nodes agreed to leave all-reduces to NCCL.
  static Result<std::unique_ptr<Communicator>> connect(std::shared_ptr<const Transport> transport,
                                                       std::vector<HandleContent> handles, int rank,
                                                       std::uint64_t comm_id,
                                                       std::unique_ptr<TransportListener> listener,
                                                       CollectiveOptions options);
  // The job has no further use for it, and the process may end afterwards. It ends when the other
  // machines have what was sent, 5 s at most, or its close is deferred: it stays on the reactor for
  // as long as other nodes need it (session.h), RIFFLE_PEER_TIMEOUT at the most; the job's memory
  // is not touched.
  static void close(std::unique_ptr<Communicator> communicator);
  ~Communicator() override;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // A free request, or null if all are in flight. Filled by the caller, then posted.
  Request* take_request();
  // Where the job goes on after losses: a copy of what the request's operation will overwrite.
  // False: there is no room for it now.
  bool keep_input(Request* request, std::size_t bytes);
  void post(Request* request);
  // An all-reduce, filled but not posted, as `shape` says, whose identity is looked up if it names
  // a coll object. False: not now, it is free again.
  bool post_all_reduce(Request* request, const CallShape& shape);
  Result<bool> test(Request* request, int* bytes);
  void fence(const void* base, std::size_t size);

 private:
  Communicator(std::shared_ptr<const Transport> transport, int rank, int size,
               CollectiveOptions options);

  // Requests, and the segments of the calls of a mode that begins and of one that ends.
  static constexpr std::size_t kMaxOperations = kMaxRequests + 2 * RelaxedRun::kMaxSegments;

  // NCCL's progress thread.
  const CallIdentity& identify(const CallShape& shape);
  void give_back_kept(Request* request);
  void mark_running(Request* request, bool is_large);
  void free_request(Request* request);
  void post_exact(Request* request);  // the call that was looked up last

  // Reactor thread.
  void on_wake() override;
  void on_failure(const Status& why) override;
  void post(Operation* operation);
  void start(std::vector<HandleContent> handles, NodeReport report,
             std::unique_ptr<TransportListener> listener);
  SessionOptions session_options(const SyncSettings& sync);
  SessionHooks session_hooks(const SyncSettings& sync, const SessionOptions& options,
                             const NodeReport& report, std::uint64_t number);
  ReplanHooks replan_hooks(const SyncSettings& sync, const SessionOptions& options,
                           const NodeReport& report);
  void finish_connect(const Status& outcome, const std::string& fallback_reason);
  void tell_outcome(const Status& outcome, bool falls_back);
  void failed(const std::string& why);
  void abort(const std::string& fault, const std::string& why);
  bool defer_close();
  void end_deferred();
  void end_record();
  void stop();

  const std::shared_ptr<const Transport> transport_;
  const int rank_, size_;
  const CollectiveOptions options_;
  // Where several threads share the work, the first one, and the others.
  std::shared_ptr<Reactor> reactor_;
  std::vector<std::shared_ptr<Reactor>> further_;

  // Reactor thread only.
  OwnedTimers timers_;
  std::shared_ptr<Recording> recording_;  // null: nothing is recorded
  // Null: all-reduces are always exact. Made by start(); then as its header says.
  std::unique_ptr<RelaxedCalls> relaxed_;
  std::unique_ptr<BackgroundThread> background_;
  std::unique_ptr<NetworkDecision> decision_;  // node 0 asks it
  std::uint64_t operations_ = 0;
  CollectiveProgress progress_;
  bool is_close_deferred_ = false;  // it has no other holder, and ends itself
  bool has_failed_ = false;
  bool is_broken_ = false;        // something was thrown
  Operation* in_hand_ = nullptr;  // on its way from the ring to the session
  bool knows_lengths_ = false;    // of the verdict; connect() reads it when the outcome is known
  std::unique_ptr<Session> session_;
  std::unique_ptr<TransportMesh> mesh_;
  const std::shared_ptr<Deliveries> deliveries_ = std::make_shared<Deliveries>();

  std::shared_ptr<known_lengths::Nodes> told_;  // the tuner, if all nodes know lengths
  // Connect's outcome, from the reactor to the waiting service thread.
  struct Outcome;
  std::shared_ptr<Outcome> outcome_;

  // Requests on their way to the reactor: written by NCCL's progress thread, read by the reactor.
  std::array<Request, kMaxRequests> requests_;
  std::array<Operation*, kMaxOperations> posted_{};
  std::atomic<std::uint64_t> posted_head_{0}, posted_tail_{0};
  std::size_t next_request_ = 0;
  CallIdentity identity_;             // of the last call looked up; NCCL's progress thread
  std::unique_ptr<KeptInputs> kept_;  // null unless RIFFLE_ON_LOSS=continue; NCCL's progress thread
  // Of calls that failed: the network may still read them.
  std::vector<std::vector<std::byte>> failed_inputs_;
  bool said_too_large_ = false;

  // When requests may tell of their failure: what the others hear leaves before this process ends.
  std::atomic<std::uint64_t> error_due_ns_{0};
  std::mutex error_mutex_;
  std::string error_;
};

}  // namespace riffle::coll
