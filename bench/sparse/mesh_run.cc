#include "bench/sparse/mesh_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bench/sparse/sums.h"
#include "plugin/transport/stream_set.h"

namespace riffle::bench {
namespace {

constexpr std::size_t kFrameBytes = 256 << 10;  // a long message takes all streams
constexpr std::size_t kMostBytes = std::size_t{1} << 31;
constexpr std::uint16_t kAsksForConfirmation = 1, kConfirmation = 2;
constexpr auto kDeadline = std::chrono::seconds(100);

}  // namespace

MeshRun::MeshRun(host::Bootstrap& bootstrap)
    : reactor_(Reactor::acquire()), peers_(static_cast<std::size_t>(bootstrap.size())) {}

Result<std::unique_ptr<MeshRun>> MeshRun::connect(host::Bootstrap& bootstrap) {
  std::unique_ptr<MeshRun> self(new MeshRun(bootstrap));
  if (Status s = self->open(bootstrap); !s) return s;
  return self;
}

Status MeshRun::open(host::Bootstrap& bootstrap) {
  auto listener = TcpListener::open(0, 0);
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
  TcpMeshOptions options;
  options.streams = streams_to_each_of(bootstrap.size() - 1);
  reactor_->run_and_wait([&] {
    mesh_ = make_tcp_mesh(*reactor_, std::move(*listener), std::move(handles), bootstrap.rank(),
                          options, this);
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
    if (mesh_) mesh_->close();
    mesh_.reset();
  });
}

void MeshRun::load(Scheme& scheme) {
  logged_ = 0;
  if (!scheme.is_done()) log_round(scheme);
}

void MeshRun::log_round(Scheme& scheme) {
  if (log_.size() == logged_) log_.emplace_back();
  Logged& logged = log_[logged_++];
  logged.round = scheme.round();
  if (logged.messages.size() < logged.round.to.size()) {
    logged.messages.resize(logged.round.to.size());
  }
  for (std::size_t i = 0; i < logged.round.to.size(); ++i) {
    const auto bytes = scheme.message(i);
    logged.messages[i].assign(bytes.begin(), bytes.end());
  }
}

Result<RunTimes> MeshRun::go(Scheme* scheme) {
  std::unique_lock lock(mutex_);
  if (!status_) return status_;
  is_over_ = false;
  const auto now = static_cast<std::int64_t>(Reactor::now_ns());
  reactor_->run([this, scheme, now] {
    scheme_ = scheme;
    times_ = {now, 0, 0};
    at_ = 0;
    is_done_ = logged_ == 0;
    is_running_ = true;
    if (!is_done_) send_round();
    advance();
  });
  if (!changed_.wait_for(lock, kDeadline, [&] { return is_over_; })) {
    return timeout_error("the run did not end");
  }
  if (!status_) return status_;
  return times_;
}

void MeshRun::send_round() {
  const Logged& logged = log_[at_];
  for (std::size_t i = 0; i < logged.round.to.size(); ++i) {
    const Bytes& bytes = logged.messages[i];
    const int to = logged.round.to[i];
    FrameHeader header;
    header.seq = peers_[static_cast<std::size_t>(to)].next_out++;
    header.total = bytes.size();
    if (logged.round.waits_for_delivery) {
      header.flags = kAsksForConfirmation;
      ++unconfirmed_;
    }
    std::size_t at = 0;
    do {
      const std::size_t length = std::min(kFrameBytes, bytes.size() - at);
      header.offset = at;
      header.length = static_cast<std::uint32_t>(length);
      ++unsent_;
      mesh_->send(to, header, std::as_bytes(std::span(bytes).subspan(at, length)), 0, 0);
      at += length;
    } while (at < bytes.size());
  }
}

bool MeshRun::is_round_over() const {
  const Round& round = log_[at_].round;
  if (round.waits_for_delivery && unconfirmed_ > 0) return false;
  return std::ranges::all_of(round.from, [&](int from) {
    const Peer& peer = peers_[static_cast<std::size_t>(from)];
    return !peer.in.empty() && peer.in.front().is_whole;
  });
}

void MeshRun::finish_round() {
  const std::vector<int>& from = log_[at_].round.from;
  if (scheme_ != nullptr) {
    std::vector<std::span<const std::uint8_t>> messages;
    for (const int f : from) messages.emplace_back(peers_[static_cast<std::size_t>(f)].in[0].bytes);
    const double start_us = thread_us();
    const Status status = scheme_->take(messages);
    if (!status) return fail(status);
    if (!scheme_->is_done()) log_round(*scheme_);
    times_.compute_us += thread_us() - start_us;
  }
  for (const int f : from) {
    Peer& peer = peers_[static_cast<std::size_t>(f)];
    peer.spare.push_back(std::move(peer.in.front().bytes));
    peer.in.pop_front();
    ++peer.first_in;
  }
  is_done_ = ++at_ == logged_;
  if (!is_done_) send_round();
}

void MeshRun::advance() {
  while (is_running_ && !is_done_ && is_round_over()) finish_round();
  if (is_running_ && is_done_ && times_.end_ns == 0) {
    times_.end_ns = static_cast<std::int64_t>(Reactor::now_ns());
  }
  end_if_all_is_sent();
}

void MeshRun::end_if_all_is_sent() {
  if (!is_running_ || !is_done_ || unsent_ > 0) return;
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

Result<std::byte*> MeshRun::place(int peer_rank, const FrameHeader& header) {
  static std::byte nothing;
  if ((header.flags & kConfirmation) != 0) return &nothing;
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  if (header.seq < peer.first_in || header.total > kMostBytes || header.offset > header.total ||
      header.length > header.total - header.offset ||
      header.seq - peer.first_in > log_.size() + 64) {
    return remote_error("a frame that belongs to no message");
  }
  const auto index = static_cast<std::size_t>(header.seq - peer.first_in);
  while (peer.in.size() <= index) peer.in.emplace_back();
  Incoming& in = peer.in[index];
  if (in.received == 0 && in.bytes.empty() && header.total > 0) {
    if (!peer.spare.empty()) {
      in.bytes = std::move(peer.spare.back());
      peer.spare.pop_back();
    }
    in.bytes.resize(header.total);
  }
  if (in.bytes.size() != header.total) return remote_error("frames of one message disagree");
  if (header.length == 0) return &nothing;
  return reinterpret_cast<std::byte*>(in.bytes.data()) + header.offset;
}

void MeshRun::arrived(int peer_rank, const FrameHeader& header, std::byte*) {
  if ((header.flags & kConfirmation) != 0) {
    if (unconfirmed_ > 0) --unconfirmed_;
    return advance();
  }
  Peer& peer = peers_[static_cast<std::size_t>(peer_rank)];
  Incoming& in = peer.in[static_cast<std::size_t>(header.seq - peer.first_in)];
  in.received += header.length;
  in.is_whole = in.received == header.total;
  if (!in.is_whole) return;
  if ((header.flags & kAsksForConfirmation) != 0) {
    FrameHeader confirmation;
    confirmation.flags = kConfirmation;
    ++unsent_;
    mesh_->send(peer_rank, confirmation, {}, 0, 0);
  }
  advance();
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
