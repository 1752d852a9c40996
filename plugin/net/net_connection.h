// What both ends of a NET connection share: the table of requests, the way from the caller's thread
// to the reactor and back, failure and the end.
//
// Threads: claim, submit and test on the caller's; the virtual functions and everything of
// FrameSink on the reactor's.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/net/net_request.h"
#include "plugin/transport/base/link.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle::net {

class Connection : protected FrameSink, private Reactor::WakeHandler {
 public:
  enum class Way { kSends, kReceives };
  Connection(Reactor& reactor, Way way);
  ~Connection() override = default;

  // Reactor thread, once, right after the constructor.
  void attach(std::shared_ptr<Link> link);

  // Null if all requests are in use. The caller fills in the messages and submits.
  Result<Request*> claim(int count);
  void submit(Request* request);
  Result<bool> test(Request* request, int* sizes);

  // Waits for the reactor; afterwards no user memory is touched. Deletes `connection`.
  static void close(Connection* connection);
  void fence(const void* base, std::size_t size);

 protected:
  virtual void start(Request& request) = 0;
  virtual void run() = 0;  // after new requests were started
  virtual void stop() {}   // forget all requests: the connection failed

  Link& link() { return *link_; }
  Request& request_at(int index) { return requests_.at(static_cast<std::size_t>(index)); }
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  void complete(Request& request);
  // The connection is of no further use: every running request fails with `why`, once.
  void fail(const Status& why);
  // As fail, and the peer learns why.
  void fail_both(const Status& why);

  // FrameSink: what is alike for both ends.
  void lost(int /*peer*/, const Status& why) override {
    fail(Status(why.code(), "lost " + peer_ + ": " + why.message()));
  }
  void failed(const Status& why) override { fail(why); }
  void departed(int peer) override;
  void sent(int /*peer*/, std::uint64_t) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;

 private:
  void on_wake() override;
  void on_failure(const Status& why) override { fail(why); }
  void start_submitted();
  void end(const Status& why);
  bool has_running() const;
  bool touches(const Request& request, const std::byte* base, std::size_t size) const;
  bool is_of_this_process() const;
  bool is_large(const Request& request) const;
  void stop_counting(Request* request);  // as large work
  Status failure() const;
  Status failure_of_a_call();

  const std::shared_ptr<Reactor> reactor_;
  const std::uint32_t generation_;
  const Way way_;
  std::shared_ptr<Link> link_;  // null once failed
  std::string peer_;
  std::array<Request, kMaxRequests> requests_;
  // The caller's thread:
  std::uint64_t next_order_ = 0;
  std::size_t last_bytes_ = ~std::size_t{0};  // of the request that was done last
  std::string fault_text_;                    // a kFault's payload, coming or going

  mutable std::mutex mutex_;
  std::array<Request*, kMaxRequests> submitted_{};  // guarded by mutex_
  int submitted_count_ = 0;                         // guarded by mutex_
  Status failure_;                                  // guarded by mutex_
  std::atomic<bool> failed_{false};
  std::atomic<bool> left_quietly_{false};  // failed without a line in the log
};

}  // namespace riffle::net
