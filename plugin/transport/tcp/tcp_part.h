// TcpPart: what a further progress thread has of a mesh over TCP (base/mesh_part.h): of every link
// as many streams as the mesh itself has, as a link of its own. The mesh connects and accepts them
// all, as streams of one link, and hands them over when they are all there, so that nodes agree on
// which is whose by their numbers alone.
//
// Threads: as base/mesh_part.h says; take_over(), activity_of() and counters_of(): the mesh's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "plugin/transport/base/mesh_part.h"
#include "plugin/transport/handshake/connection.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {

struct MeshParts;

class TcpPart final : public MeshPart, Reactor::WakeHandler {
 public:
  // Its share of a new link's streams, as the mesh made the link.
  struct Streams {
    int peer = 0;
    std::vector<Connection> connections;
    TcpLinkOptions options;
  };

  // `mesh` must outlive it.
  TcpPart(const MeshParts& mesh, std::shared_ptr<Reactor> reactor);
  ~TcpPart() override;
  // On the mesh's thread, before it is destroyed.
  void stop_telling() { mesh_reactor_->forget(&teller_); }

  void start(Hooks hooks) override;
  void run_and_wait(const std::function<void()>& f) override { reactor_->run_and_wait(f); }
  void wake() override { reactor_->wake(this); }
  void tell() override { mesh_reactor_->wake(&teller_); }
  void fail(const Status& why) override;

  int rank() const override;
  int size() const override { return static_cast<int>(channels_.size()); }
  std::uint64_t now_ns() const override { return Reactor::now_ns(); }
  void open(int /*peer*/) override {}  // the mesh does
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override;
  void dismiss(int peer) override;
  void abort() override;
  void close();

  void take_over(Streams streams);
  // As of a moment ago: asks the thread to look again.
  LinkActivity activity_of(int peer);
  LinkCounters counters_of(int peer);

 private:
  // On the mesh's thread, for the part.
  class Teller final : public Reactor::WakeHandler {
   public:
    explicit Teller(TcpPart& part) : part_(part) {}
    void on_wake() override {
      if (part_.hooks_.on_told) part_.hooks_.on_told();
    }
    void on_failure(const Status& why) override { part_.fail(why); }

   private:
    TcpPart& part_;
  };
  struct Seen {
    LinkActivity activity;
    LinkCounters counters;
  };

  void on_wake() override;
  void on_failure(const Status& why) override;
  void link(Streams streams);
  void lost(int peer, const Status& why);
  void look();
  void end(void (LinkChannel::*how)());
  LinkChannel* channel(int peer) const {
    return channels_.at(static_cast<std::size_t>(peer)).get();
  }

  const MeshParts& mesh_;
  const std::shared_ptr<Reactor> mesh_reactor_, reactor_;
  Teller teller_;
  Hooks hooks_;  // set before anything is handed over
  bool is_over_ = false;
  std::vector<std::shared_ptr<LinkChannel>> channels_;  // by peer; null: none yet, or over
  std::mutex mutex_;                                    // of what follows
  std::vector<Streams> handed_over_;
  bool is_asked_ = false;  // to look
  std::vector<Seen> seen_;
};

// Hands the streams of a new link over to the parts, evenly, by their numbers; leaves the first
// ones. An error, and nothing done: they cannot be shared out.
Status share_out(const std::vector<std::unique_ptr<TcpPart>>& parts, int peer,
                 std::vector<Connection>& connections, const TcpLinkOptions& options);

}  // namespace riffle
