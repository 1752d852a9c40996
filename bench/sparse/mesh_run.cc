#include "bench/sparse/mesh_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bench/sparse/sums.h"
#include "plugin/entry/options.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/factory.h"

namespace riffle::bench {
namespace {

constexpr std::size_t kFrameBytes = 256 << 10;  // a long message takes all streams
constexpr std::size_t kMostBytes = std::size_t{1} << 31;
constexpr std::uint32_t kMostLanes = 1 << 16;
constexpr std::uint64_t kMostAhead = 1 << 16;  // messages of a peer that we are not yet up to
constexpr auto kDeadline = std::chrono::seconds(100);

// Part of a message of a lane.
struct LaneFrame {
  static constexpr FrameType kType = FrameType::kData;
  enum Asks : std::uint16_t { kNothing, kForConfirmation, kIsConfirmation };
  std::uint64_t number = 0;  // of the message
  std::uint64_t offset = 0;  // of this part
  std::uint64_t total = 0;   // bytes of the message
  std::uint32_t lane = 0;
  std::uint16_t asks = kNothing;

  FrameBody encode() const { return pack(number, offset, total, lane, asks); }
  static LaneFrame decode(const FrameBody& body) {
    LaneFrame f;
    unpack(body, f.number, f.offset, f.total, f.lane, f.asks);
    return f;
  }
};

}  // namespace

MeshRun::MeshRun(host::Bootstrap& bootstrap)
    : reactor_(Reactor::acquire(options_from(config()).transport)),
      peers_(static_cast<std::size_t>(bootstrap.size())) {}

Result<std::unique_ptr<MeshRun>> MeshRun::connect(host::Bootstrap& bootstrap) {
  std::unique_ptr<MeshRun> self(new MeshRun(bootstrap));
  if (Status s = self->open(bootstrap); !s) return s;
  return self;
}

Status MeshRun::open(host::Bootstrap& bootstrap) {
  const auto transport = make_transport(options_from(config()).transport);
  if (!transport) return transport.status();
  auto listener = (*transport)->listen(0, 0);
  if (!listener) return listener.status();
  const Handle mine = (*listener)->handle();
  std::vector<Handle> all(peers_.size());
  if (Status s = bootstrap.all_gather(&mine, all.data(), sizeof mine); !s) return s;
  std::vector<HandleContent> handles;
  for (const Handle& handle : all) {
    auto content = decode(handle);
    if (!content) return content.status();
    handles.push_back(*content);
  }
  reactor_->run_and_wait([&] {
    mesh_ = (*transport)
                ->make_mesh(*reactor_, std::move(*listener), std::move(handles), bootstrap.rank(),
                            {}, this);
    for (int peer = 0; peer < bootstrap.size(); ++peer) {
      if (peer != bootstrap.rank()) mesh_->open(peer);
    }
  });
  std::unique_lock lock(mutex_);
  const bool in_time = changed_.wait_for(
      lock, kDeadline, [&] { return !status_ || links_ + 1 == bootstrap.size(); });
  if (!status_) return status_;
  return in_time ? Status::ok() : timeout_error("not all links came up");
}

MeshRun::~MeshRun() {
  reactor_->run_and_wait([&] {
    reactor_->forget(this);
    if (mesh_) mesh_->close();
    mesh_.reset();
  });
}

void MeshRun::load(const std::vector<Call>& calls) {
  count_ = calls.size();
  if (lanes_.size() < count_) lanes_.resize(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    lanes_[i].call = calls[i];
    lanes_[i].logged = 0;
    calls[i].scheme->prepare(calls[i].gradient);
  }
}

void MeshRun::begin(Lane& lane) {
  const double start_us = thread_us();
  lane.logged = 0;
  lane.call.scheme->begin(lane.call.gradient);
  if (!lane.call.scheme->is_done()) log_round(lane);
  times_.compute_us += thread_us() - start_us;
}

void MeshRun::log_round(Lane& lane) {
  if (lane.log.size() == lane.logged) lane.log.emplace_back();
  Logged& logged = lane.log[lane.logged++];
  logged.round = lane.call.scheme->round();
  if (logged.messages.size() < logged.round.to.size()) {
    logged.messages.resize(logged.round.to.size());
  }
  for (std::size_t i = 0; i < logged.round.to.size(); ++i) {
    const auto bytes = lane.call.scheme->message(i);
    logged.messages[i].assign(bytes.begin(), bytes.end());
  }
}

Result<RunTimes> MeshRun::go(bool is_replay) {
  std::unique_lock lock(mutex_);
  if (!status_) return status_;
  is_over_ = false;
  lock.unlock();  // the reactor's thread takes it where a run fails at once
  const auto now = static_cast<std::int64_t>(Reactor::now_ns());
  reactor_->run_and_wait([this, is_replay, now] {
    times_ = {now, 0, 0};
    is_replay_ = is_replay;
    started_ = ended_ = 0;
    for (std::size_t i = 0; i < count_; ++i) lanes_[i].is_started = false;
    is_running_ = true;
    start_lanes();
  });
  lock.lock();
  if (!changed_.wait_for(lock, kDeadline, [&] { return is_over_; })) {
    return timeout_error("the run did not end");
  }
  if (!status_) return status_;
  return times_;
}

MeshRun::Wire& MeshRun::wire(int peer, std::size_t lane) {
  auto& wires = peers_[static_cast<std::size_t>(peer)].wires;
  if (wires.size() <= lane) wires.resize(lane + 1);
  return wires[lane];
}

void MeshRun::start_lanes() {
  while (is_running_ && started_ < std::min(count_, ended_ + kLanes)) {
    const std::size_t lane = started_++;
    lanes_[lane].at = 0;
    lanes_[lane].is_ahead = false;
    lanes_[lane].is_started = true;
    if (!is_replay_) begin(lanes_[lane]);
    if (lanes_[lane].logged > 0) send_round(lane);
    advance(lane);
  }
  end_if_all_is_sent();
}

void MeshRun::send_round(std::size_t lane_number) {
  Lane& lane = lanes_[lane_number];
  const Logged& logged = lane.log[lane.at];
  for (std::size_t i = 0; i < logged.round.to.size(); ++i) {
    const Bytes& bytes = logged.messages[i];
    const int to = logged.round.to[i];
    LaneFrame frame;
    frame.lane = static_cast<std::uint32_t>(lane_number);
    frame.number = wire(to, lane_number).next_out++;
    frame.total = bytes.size();
    if (logged.round.waits_for_delivery) {
      frame.asks = LaneFrame::kForConfirmation;
      ++lane.unconfirmed;
    }
    std::size_t at = 0;
    do {
      const std::size_t length = std::min(kFrameBytes, bytes.size() - at);
      frame.offset = at;
      ++unsent_;
      // Of what waits for one peer, lower lanes go first.
      mesh_->send(to, header_of(frame, length), std::as_bytes(std::span(bytes).subspan(at, length)),
                  0, lane_number);
      at += length;
    } while (at < bytes.size());
  }
}

bool MeshRun::is_round_over(std::size_t lane_number) {
  const Lane& lane = lanes_[lane_number];
  const Round& round = lane.log[lane.at].round;
  if (round.waits_for_delivery && lane.unconfirmed > 0) return false;
  return std::ranges::all_of(round.from, [&](int from) {
    const Wire& in = wire(from, lane_number);
    return !in.in.empty() && in.in.front().is_whole;
  });
}

void MeshRun::finish_round(std::size_t lane_number) {
  Lane& lane = lanes_[lane_number];
  if (!is_replay_) {
    const double start_us = thread_us();
    lane.is_ahead = lane.call.scheme->go_ahead();
    if (lane.is_ahead) log_round(lane);
    times_.compute_us += thread_us() - start_us;
  }
  if (lane.is_ahead) {
    ++lane.at;
    send_round(lane_number);
    return reactor_->wake(this);  // behind the links, which send first
  }
  take(lane_number, lane.at);
  if (is_running_ && ++lane.at < lane.logged) send_round(lane_number);
}

void MeshRun::on_wake() {
  for (std::size_t i = 0; is_running_ && i < count_; ++i) {
    if (!std::exchange(lanes_[i].is_ahead, false)) continue;
    take(i, lanes_[i].at - 1);
    advance(i);
  }
  start_lanes();
}

void MeshRun::take(std::size_t lane_number, std::size_t round) {
  Lane& lane = lanes_[lane_number];
  const std::vector<int> from = lane.log[round].round.from;
  if (!is_replay_) {
    std::vector<std::span<const std::uint8_t>> messages;
    for (const int f : from) messages.emplace_back(wire(f, lane_number).in.front().bytes);
    const double start_us = thread_us();
    const Status status = lane.call.scheme->take(messages);
    if (!status) return fail(status);
    // Of one that went ahead the next round is logged already.
    if (!lane.call.scheme->is_done() && round + 1 == lane.logged) log_round(lane);
    times_.compute_us += thread_us() - start_us;
  }
  for (const int f : from) {
    Wire& in = wire(f, lane_number);
    peers_[static_cast<std::size_t>(f)].spare.push_back(std::move(in.in.front().bytes));
    in.in.pop_front();
    ++in.first_in;
  }
}

void MeshRun::advance(std::size_t lane_number) {
  Lane& lane = lanes_[lane_number];
  if (!lane.is_started) return;
  while (is_running_ && !lane.is_ahead && lane.at < lane.logged && is_round_over(lane_number)) {
    finish_round(lane_number);
  }
  if (!is_running_ || lane.is_ahead || lane.at < lane.logged) return;
  lane.is_started = false;
  if (++ended_ == count_) times_.end_ns = static_cast<std::int64_t>(Reactor::now_ns());
}

void MeshRun::end_if_all_is_sent() {
  if (!is_running_ || ended_ < count_ || unsent_ > 0) return;
  is_running_ = false;
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}

void MeshRun::fail(const Status& why) {
  is_running_ = false;
  const std::lock_guard lock(mutex_);
  if (status_) status_ = why;
  is_over_ = true;
  changed_.notify_all();
}

void MeshRun::opened(int) {
  const std::lock_guard lock(mutex_);
  ++links_;
  changed_.notify_all();
}

Result<std::byte*> MeshRun::get_receive_buffer(int peer_rank, const FrameHeader& header) {
  static std::byte nothing;
  const auto frame = frame_of<LaneFrame>(header);
  if (frame.asks == LaneFrame::kIsConfirmation) return &nothing;
  if (frame.lane >= kMostLanes) return remote_error("a frame of no lane");
  Wire& from = wire(peer_rank, frame.lane);
  if (frame.number < from.first_in || frame.number - from.first_in > kMostAhead ||
      frame.total > kMostBytes || frame.offset > frame.total ||
      header.length > frame.total - frame.offset) {
    return remote_error("a frame that belongs to no message");
  }
  const auto index = static_cast<std::size_t>(frame.number - from.first_in);
  while (from.in.size() <= index) from.in.emplace_back();
  Incoming& in = from.in[index];
  if (in.received == 0 && in.bytes.empty() && frame.total > 0) {
    auto& spare = peers_[static_cast<std::size_t>(peer_rank)].spare;
    if (!spare.empty()) {
      in.bytes = std::move(spare.back());
      spare.pop_back();
    }
    in.bytes.resize(frame.total);
  }
  if (in.bytes.size() != frame.total) return remote_error("frames of one message disagree");
  if (header.length == 0) return &nothing;
  return reinterpret_cast<std::byte*>(in.bytes.data()) + frame.offset;
}

void MeshRun::arrived(int peer_rank, const FrameHeader& header, std::byte*) {
  const auto frame = frame_of<LaneFrame>(header);
  const std::size_t lane = frame.lane;
  if (frame.asks == LaneFrame::kIsConfirmation) {
    if (lane >= count_ || lanes_[lane].unconfirmed == 0) return;
    --lanes_[lane].unconfirmed;
    advance(lane);
    return start_lanes();
  }
  Wire& from = wire(peer_rank, lane);
  Incoming& in = from.in[static_cast<std::size_t>(frame.number - from.first_in)];
  in.received += header.length;
  in.is_whole = in.received == frame.total;
  if (!in.is_whole) return;
  if (frame.asks == LaneFrame::kForConfirmation) {
    LaneFrame confirmation;
    confirmation.lane = frame.lane;
    confirmation.asks = LaneFrame::kIsConfirmation;
    ++unsent_;
    mesh_->send(peer_rank, header_of(confirmation), {}, 0, 0);
  }
  // Before run() the lanes are another thread's.
  if (!is_running_ || lane >= count_) return;
  advance(lane);
  start_lanes();
}

void MeshRun::sent(int, std::uint64_t) {
  --unsent_;
  end_if_all_is_sent();
}

void MeshRun::departed(int peer) {
  if (is_running_) fail(remote_error("rank " + std::to_string(peer) + " left"));
}

void MeshRun::lost(int peer, const Status& why) {
  fail(remote_error("rank " + std::to_string(peer) + " is lost: " + why.message()));
}

}  // namespace riffle::bench
