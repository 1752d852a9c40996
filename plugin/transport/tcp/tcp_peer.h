// TcpPeer: one other node, as a mesh sees it: what gathers until it is connected, then its channel
// of a link (link_channel.h).
//
// The node of the higher rank connects. Where its process has a link to the peer's that is up, or
// is within a second, it asks to join that one; refused, where that link ends meanwhile, without an
// answer in half of RIFFLE_CONNECT_TIMEOUT, and without such a link, it connects a new one. The
// other node takes whichever comes. Both within RIFFLE_CONNECT_TIMEOUT.
//
// Reactor thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/base/timer_service.h"
#include "plugin/transport/base/transport.h"
#include "plugin/transport/device/device.h"
#include "plugin/transport/handshake/connector.h"
#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/tcp/shared_links.h"
#include "plugin/transport/tcp/tcp_link.h"
#include "plugin/transport/tcp/tcp_part.h"

namespace riffle {

// What the peers of one mesh have in common.
struct MeshParts {
  std::shared_ptr<Reactor> reactor;
  std::vector<HandleContent> handles;
  int rank = 0;
  TransportOptions transport;
  MeshOptions options;
  int streams = 1;  // to each peer of a lower rank; the others connect with theirs
  std::vector<NicAddress> own;
  std::uint64_t communicator = 0;
  Secret secret{};  // of this node's handle
  std::shared_ptr<NicTraffic> nics;
  std::shared_ptr<SharedLinks> shared;            // null: this mesh shares no links
  std::vector<std::unique_ptr<TcpPart>> further;  // of further threads
  FrameSink* sink = nullptr;                      // null once the mesh is closed

  int threads() const { return 1 + static_cast<int>(further.size()); }
};

class TcpPeer {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void set_doors() = 0;   // is_expected() may have changed
    virtual void look_again() = 0;  // in a turn of its own: start_if_complete(), wants_ask()
    virtual void failed(const Status& why) = 0;
  };

  TcpPeer(const MeshParts& mesh, Owner& owner, TimerService& timers, int rank);
  ~TcpPeer() { abort(); }

  LinkChannel* channel() const { return channel_.get(); }  // null: not up
  void ask();
  std::size_t descriptors_to_open() const;  // none, where there is a link to join
  // A connection of this peer's, by its HELLO.
  Status admit(const Hello& hello) const;
  void joined(Connection connection, const Hello& hello);
  void start_if_complete();
  // ... or a link that it asks to join.
  SharedLinks::Verdict join(TcpLink& link, const JoinFrame& ask);
  bool wants_ask() const { return state_ == State::kOpening && !connects() && !joining_; }
  // Are there streams that it is to connect to this node?
  bool is_expected() const;
  // Frames go over so many times the streams that the link began with. The side that connected it
  // connects what is missing; if that fails, the streams that there are carry all.
  void use(int weight);
  void abort();
  void close();

 private:
  enum class State { kIdle, kOpening, kUp, kOver };

  const HandleContent& handle() const;
  bool connects() const { return mesh_.rank > rank_; }
  int first_streams() const;  // of each thread
  std::size_t all_first_streams() const {
    return static_cast<std::size_t>(first_streams()) * (1 + mesh_.further.size());
  }
  std::shared_ptr<TcpLink> link_to_join() const;  // null: none
  LinkTerms terms() const;
  ChannelOptions channel_options();
  Status check_encryption() const;
  void join_or_connect(std::uint64_t patience_until_ns);
  bool ask_to_join();
  void join_ended(const Status& outcome);
  Status check_welcome(const JoinFrame& welcome, const LinkMark& link) const;
  void connect();
  void connect_up_to(std::size_t streams);
  void connected(Result<Connection> one, const Hello& own);
  void added(Result<Connection> one);
  Hello hello(std::size_t stream, std::size_t streams, std::uint64_t session) const;
  bool is_one_more(const Hello& h) const;
  void up(std::shared_ptr<LinkChannel> channel);
  void stop_opening();
  void lost(const Status& why);
  void unreachable(const Status& why);
  void end();
  template <class F>
  void guarded(F&& f);

  const MeshParts& mesh_;
  Owner& owner_;
  TimerService& timers_;
  const int rank_;
  const std::string address_, name_;
  State state_ = State::kIdle;
  StreamSet streams_;       // until the link is up
  std::size_t weight_ = 1;  // Mesh::set_peer_weights
  std::size_t asked_ = 0;   // streams that weights asked for
  std::vector<std::unique_ptr<Connector>> connectors_;
  std::optional<SharedLinks::Coming> coming_;  // while it connects
  std::uint64_t deadline_ns_ = 0;
  std::uint64_t timer_ = 0;
  std::shared_ptr<LinkChannel> joining_;  // of a link that is up
  std::shared_ptr<LinkChannel> channel_;
};

}  // namespace riffle
