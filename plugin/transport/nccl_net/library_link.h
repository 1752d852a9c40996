// LibraryLink: frames between this node and one peer over the library's connections, one each way.
//
// Coming up: each side listens and tells the peer its handle, begins to connect to the peer's and
// tells that, accepts once it is told so, as some libraries wait in accept, and posts receives; it
// is up when the peer has said that it has posted some. So no message ever leaves that no receive
// waits for: a node tells the peer how many it has posted, which is the peer's credit.
//
// A frame is one message, header and payload, or several where it is larger than a slot. Frames go
// in one order, by priority and then as they were sent; the peer sees that order.
//
// Waking: the library has no descriptor to sleep on. Who sends tells the peer over TCP how many
// messages it has sent, at once where it has not lately; so a peer with nothing else to do sleeps
// until it is told, polls until all of those are in, and a while longer (kLingerNs).
//
// End: close() sends what is queued, then the number of all messages, and waits until the peer has
// them and has none under way itself; so neither side closes a connection that the other one needs.
// Whatever is not over after kDrainNs without a message is abandoned.
//
// Errors of the library wait for kGraceNs before they end the link: what the peer has to say about
// it may be on its way over TCP.
//
// Threads: the reactor's; poll(), close() and abort() within a LibraryUse.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/base/frame_sink.h"
#include "plugin/transport/nccl_net/link_account.h"
#include "plugin/transport/nccl_net/receive_side.h"
#include "plugin/transport/nccl_net/send_side.h"
#include "plugin/transport/tcp/tx_queue.h"

namespace riffle::nccl_net {

struct LibraryLinkOptions {
  int rank = 0;      // of this node
  int number = 0;    // of the peer
  std::string peer;  // for messages: "node 3 (10.0.0.3:4000)"
  int device = 0;    // of the library
  std::uint64_t communicator = 0;
  std::size_t slots = kMostSlots;  // of either connection
  bool payload_crc = false;
  std::uint64_t peer_timeout_ns = 60'000'000'000;
};

class LibraryLink {
 public:
  static constexpr std::uint64_t kLingerNs = 10'000'000;
  static constexpr std::uint64_t kRingNs = 1'000'000;
  static constexpr std::uint64_t kGraceNs = 200'000'000;
  static constexpr std::uint64_t kDrainNs = 5'000'000'000;

  // Its mesh. Any of these may close or abort the link.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual FrameSink* sink() = 0;  // null: nothing more is told
    virtual void tell(int peer, const LibraryFrame& frame, std::string payload) = 0;
    virtual void is_up(int peer) = 0;
    virtual void has_departed(int peer) = 0;
    // `tell_peer`: it is this side's library.
    virtual void has_failed(int peer, const Status& why, bool tell_peer) = 0;
  };

  LibraryLink(Owner& owner, const Net& net, void* context, LibraryLinkOptions options);
  ~LibraryLink() = default;  // after abort(), or without the library (exit_guard.h)

  // TCP to the peer stands; `deadline_ns` for the rest.
  void start(std::uint64_t now_ns, std::uint64_t deadline_ns);
  void heard(const LibraryFrame& frame, std::string_view payload);
  // A frame of the owner's came from the peer, which therefore is up. False: that cannot be.
  bool peer_is_up();
  void send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie,
            std::uint64_t priority);
  // What there is to do now; while is_active() only. True: something moved.
  bool poll(std::uint64_t now_ns);
  // Whether poll() may find something, which poll() itself decides when it is called next.
  bool is_active(std::uint64_t now_ns) const;
  // Now and then, `passed_ns` after the last time: time limits.
  void tick(std::uint64_t passed_ns);

  // The peer is gone: takes what it sent before, as far as it is here.
  void take_rest();
  // The peer said goodbye over TCP, which comes once, after all it had to say; after take_rest().
  void peer_is_gone();
  // The owner hears nothing more; what was sent goes out first.
  void close(std::uint64_t now_ns);
  void abort();
  // What the owner's work threw leaves nothing certain: nothing more arrives or leaves here.
  void halt() { is_halted_ = true; }

  bool is_up() const { return state_ == State::kUp; }
  bool was_up() const { return account_.is_begun(); }
  bool is_over() const { return state_ == State::kOver; }
  bool is_closing() const { return state_ == State::kClosing && !is_halted_; }
  void hint(RateHints hints) { hints_ = hints; }
  std::size_t bytes_to_send() const { return bytes_to_send_; }
  LinkAccount& account() { return account_; }
  const LinkAccount& account() const { return account_; }

 private:
  // kDeparted: the peer has; what is sent counts as sent, and the library is not asked any more.
  enum class State { kIdle, kOpening, kUp, kDeparted, kClosing, kOver };
  // How long something has been due in one direction and nothing has moved there.
  struct IdleClock {
    std::uint64_t ns = 0;
    bool has_moved = false;  // since the last tick

    void tick(bool is_due, std::uint64_t passed_ns) {
      ns = is_due && !has_moved ? ns + passed_ns : 0;
      has_moved = false;
    }
  };
  // What a message ends with.
  struct Ending {
    bool ends_frame = false;
    std::uint64_t cookie = 0;
  };

  void open_on(std::uint64_t now_ns);
  Status open_step();
  std::string step() const;
  bool send_on();
  bool receive_on();
  void fill(std::byte* slot);
  void left(std::size_t bytes, const Ending& ending);
  void settle_queue();
  void settle_all();
  Status take(std::span<const std::byte> message);
  void cut(std::span<const std::byte>* content, std::size_t due);
  Status has_wrong_size(std::size_t bytes, std::size_t wanted) const;
  Status begin_frame(std::span<const std::byte> content);
  void take_payload(const std::byte* from, std::size_t size);
  Status end_frame();
  // What a message begins with: no other node's or communicator's is taken for it.
  std::uint64_t number_of(int sender, std::uint64_t message) const {
    return options_.communicator ^ static_cast<std::uint64_t>(sender) << 40 ^ message;
  }
  bool has_to_send() const { return frame_ != nullptr || !queue_.is_empty(); }
  void tell(LibraryFrame::Kind kind, std::uint64_t count, std::string payload = {});
  void tell_posted();
  void ring(std::uint64_t now_ns);
  void look_at_end();
  bool knows_all() const { return peer_total_ && in_.taken() >= *peer_total_; }
  // As far as is known: the peer has begun what it did not end.
  bool misses_messages() const {
    return (heard_end_ && !knows_all()) || rung_by_peer_ > in_.taken() || header_;
  }
  Status fault() const;
  void broke(std::optional<Status>* side, const Status& why);
  void note(std::uint64_t now_ns);
  // The owner sends and hears.
  bool serves() const { return state_ == State::kUp || state_ == State::kDeparted; }
  void close_sides();
  void give_up();
  void tell_failure(const std::string& why);
  void fail(const Status& why, bool tell_peer);

  Owner& owner_;
  const Net& net_;
  const LibraryLinkOptions options_;
  State state_ = State::kIdle;
  bool is_halted_ = false;
  std::uint64_t deadline_ns_ = 0;
  bool told_call_ = false, heard_call_ = false;
  SendSide out_;
  ReceiveSide in_;

  // To the peer.
  TxQueue queue_;
  TxFrame* frame_ = nullptr;  // that is cut into messages
  std::size_t frame_at_ = 0;  // bytes of its payload that are
  std::array<Ending, kMostSlots> endings_{};
  std::uint64_t ended_ = 0;  // messages that have left
  std::size_t bytes_to_send_ = 0;
  std::uint64_t granted_ = 0;             // messages that the peer has receives for
  std::uint64_t rung_ = 0, rung_ns_ = 0;  // told by kSent, and when
  RateHints hints_;

  // From the peer.
  std::uint64_t told_posted_ = 0;
  std::uint64_t rung_by_peer_ = 0;
  std::optional<FrameHeader> header_;  // of the frame that arrives
  std::byte* to_ = nullptr;
  std::size_t have_ = 0;
  std::uint32_t payload_crc_ = 0;  // of that, as it came

  std::optional<std::uint64_t> peer_total_;  // messages, as an end told
  bool told_end_ = false, told_ended_ = false, heard_end_ = false, heard_ended_ = false;
  std::optional<Status> send_fault_, receive_fault_;
  std::uint64_t fault_ns_ = 0;  // since then
  std::uint64_t now_ns_ = 0, moved_ns_ = 0;
  IdleClock out_idle_, in_idle_;
  LinkAccount account_;
};

}  // namespace riffle::nccl_net
