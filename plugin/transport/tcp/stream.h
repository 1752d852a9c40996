// Stream: one TCP connection of a link. Sends whole frames that the link hands out one after the
// other; receives frames, payloads in place. Never waits; reactor thread only.
//
// Reading: headers and small payloads come through a staging buffer on the stack (one system call
// brings many small frames); the rest of a payload is received straight to its place, with whatever
// follows it going to the staging buffer in the same call. That takes little while payloads are
// large, as what goes through it is copied, and more the longer small frames fill it. Inside a
// large payload the kernel is asked to wake the thread when the rest of it is there (SO_RCVLOWAT),
// not for every packet: half a frame is of no use, and on a slow link a frame comes in dozens of
// packets.
//
// With keys every frame is sealed (sealed_outbox.h). Then all that comes goes through a staging
// buffer of the stream, and a payload reaches its place record by record, opened: no byte that was
// not authenticated is ever seen outside. The first record that does not open ends the link.
//
// A payload that has no channel (link_channel.h) is thrown away as it comes.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plugin/transport/handshake/connection.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/tcp/sealed_outbox.h"
#include "plugin/transport/tcp/tx_queue.h"

namespace riffle {

class LinkChannel;
class TcpLink;

// Where a frame's payload goes; without a channel: nowhere.
struct FramePlace {
  LinkChannel* channel = nullptr;
  std::byte* at = nullptr;
};

class Stream final : public Reactor::FdHandler {
 public:
  // `is_proven`: the peer is known to use this connection. Where it is not, nothing but what comes
  // from there proves it; until then nothing is sent, and its end is as good as a goodbye.
  Stream(Reactor& reactor, TcpLink& link, Connection connection, bool is_proven = true);
  ~Stream() override;

  void on_ready(std::uint32_t epoll_events) override;
  void on_failure(const Status& why) override;

  // Sends and receives what is possible now, up to `read_budget` bytes in. Not ok: the connection
  // is of no further use.
  Status write();
  Status read(std::size_t read_budget);
  // What has arrived, whether or not the kernel has reported it yet.
  Status read_unreported(std::size_t read_budget);
  Status read_all() { return read_unreported(~std::size_t{0}); }
  bool is_readable() const { return readable_ && !eof_; }
  // The kernel is silent about less than the rest of a payload.
  bool waits_for_more() const { return wakes_at_ > 1; }

  // After the goodbye frame: ends this direction; from then on incoming bytes are thrown away.
  void start_discarding() { discarding_ = true; }
  void end_writing();
  bool is_finished() const { return said_goodbye_ && eof_; }

  // Payloads that were taken but not sent yet are copied: their owner, this channel, or all if
  // null, is leaving.
  void copy_payloads(const LinkChannel* of);
  // The rest of a payload that is being received for it is thrown away.
  void forget(const LinkChannel& channel) {
    if (place_.channel == &channel) place_ = {};
  }
  // Hands back every frame that it took, once closed.
  template <class GiveBack>
  void give_back(GiveBack&& give_back) {
    const std::size_t count = std::exchange(taken_count_, 0);
    for (std::size_t i = 0; i < count; ++i) give_back(taken_[i]);
  }
  void close();
  bool is_open() const { return socket_.is_open(); }
  int socket() const { return socket_.get(); }

  struct Activity {
    std::uint64_t delivered_bytes = 0;  // since the start
    // Since the last call: the network had something to deliver, and the peer read what came.
    std::uint64_t busy_more_ns = 0;
  };
  Activity activity();

  bool is_mid_frame() const { return taken_count_ > 0; }
  // Of frames that were taken, what the kernel does not have yet.
  std::size_t bytes_to_send() const {
    return taken_bytes_ - std::min(taken_bytes_, sent_of_first_);
  }
  // What the kernel has of this stream, and the peer's kernel has not acknowledged.
  std::size_t bytes_unacknowledged() const;
  bool is_proven() const { return is_proven_; }
  bool heard_goodbye() const { return heard_goodbye_; }
  bool said_goodbye() const { return said_goodbye_; }
  TxFrame& own_frame() { return own_frame_; }

  std::uint64_t last_sent_ns = 0;
  std::uint64_t last_received_ns = 0;
  bool owes_heartbeat = false;

 private:
  static constexpr std::size_t kMaxTaken = 16;          // frames per system call
  static constexpr std::size_t kBatchBytes = 64 << 10;  // no further frame once this much is taken
  static constexpr std::size_t kLeastStagingBytes = 4 << 10;
  static constexpr std::size_t kMostStagingBytes = 32 << 10;
  static constexpr std::size_t kSealedStagingBytes = 64 << 10;  // once a record needs more
  using Pieces = std::array<iovec, 2 * kMaxTaken>;

  std::size_t wire_bytes(const TxFrame& frame) const;
  std::size_t pieces_to_send(Pieces& pieces);
  Status read_available(std::size_t read_budget);
  void wake_at(std::size_t bytes);
  void take_frames();
  Status drain_receive(int error);
  void release_sent(std::size_t bytes);
  Status on_broken(const char* doing, int error);
  Status discard();
  void close_unconfirmed();
  void count_payload(const std::byte* from, std::size_t size);
  void keep_rest(std::span<const std::byte> rest);
  Status digest_what_came(std::span<std::byte> staging);
  Status digest(std::span<const std::byte> staged);
  std::size_t next_record_bytes() const;
  std::size_t bytes_to_wake_at() const;
  Status open_records();
  Status open_header(std::span<const std::byte> record);
  Status open_payload(std::span<std::byte> record);
  Status begin_frame(const FrameHeader& header);
  Status end_frame();
  void take_payload(const std::byte* from, std::size_t size);

  Reactor& reactor_;
  TcpLink& link_;
  Fd socket_;
  std::uint64_t delivered_bytes_ = 0;  // as of the last activity(), like the next
  std::uint64_t busy_us_ = 0;
  bool is_proven_;
  bool readable_ = true;
  bool writable_ = true;
  bool hung_up_ = false;  // the kernel said so: read on until the end of the stream
  bool eof_ = false;
  bool heard_goodbye_ = false;
  bool said_goodbye_ = false;
  bool discarding_ = false;

  std::array<TxFrame*, kMaxTaken> taken_{};
  std::size_t taken_count_ = 0;
  std::size_t taken_bytes_ = 0;
  std::size_t sent_of_first_ = 0;  // bytes of taken_[0], header included, that the kernel has
  TxFrame own_frame_;

  const StreamKeysPtr keys_;
  SealedOutbox outbox_;  // with keys

  // Received and not a whole header, or with keys not a whole record, yet.
  std::vector<std::byte> staging_;
  std::size_t staged_ = 0;
  std::size_t staging_bytes_ = kLeastStagingBytes;  // that the next call may bring; without keys
  bool is_reading_ = false;                         // what came is being digested
  FrameHeader header_;
  FramePlace place_;  // of the payload
  std::size_t payload_have_ = 0;
  // Of what is here, taken as it came: several unwanted payloads may have the same place.
  std::uint32_t payload_crc_ = 0;
  bool in_payload_ = false;
  std::size_t wakes_at_ = 1;  // bytes
};

}  // namespace riffle
