#include "plugin/transport/tcp/tcp_part.h"

#include <iterator>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/transport/tcp/tcp_peer.h"

namespace riffle {

TcpPart::TcpPart(const MeshParts& mesh, std::shared_ptr<Reactor> reactor)
    : mesh_(mesh),
      mesh_reactor_(mesh.reactor),
      reactor_(std::move(reactor)),
      teller_(*this),
      channels_(mesh.handles.size()),
      seen_(mesh.handles.size()) {}

TcpPart::~TcpPart() {
  abort();
  reactor_->forget(this);
}

int TcpPart::rank() const { return mesh_.rank; }

void TcpPart::start(Hooks hooks) { hooks_ = std::move(hooks); }

void TcpPart::fail(const Status& why) {
  if (mesh_.sink != nullptr) mesh_.sink->failed(why);
}

// ---- the mesh's thread ----

void TcpPart::take_over(Streams streams) {
  {
    const std::lock_guard lock(mutex_);
    handed_over_.push_back(std::move(streams));
  }
  wake();
}

LinkActivity TcpPart::activity_of(int peer) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(is_asked_, true)) wake();
  return seen_.at(static_cast<std::size_t>(peer)).activity;
}

LinkCounters TcpPart::counters_of(int peer) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(is_asked_, true)) wake();
  return seen_.at(static_cast<std::size_t>(peer)).counters;
}

// ---- the part's thread ----

void TcpPart::on_wake() {
  std::vector<Streams> handed_over;
  bool is_asked = false;
  {
    const std::lock_guard lock(mutex_);
    handed_over.swap(handed_over_);
    is_asked = std::exchange(is_asked_, false);
  }
  if (is_over_) return;
  for (Streams& streams : handed_over) link(std::move(streams));
  if (is_asked) look();
  if (hooks_.on_wake) hooks_.on_wake();
}

void TcpPart::on_failure(const Status& why) {
  if (hooks_.sink != nullptr) hooks_.sink->failed(why);
}

void TcpPart::link(Streams streams) {
  const int peer = streams.peer;
  const std::string name = streams.options.peer;
  channels_.at(static_cast<std::size_t>(peer)) =
      TcpLink::create(*reactor_, std::move(streams.connections), std::move(streams.options),
                      {.number = peer,
                       .peer = name,
                       .on_lost = [this, peer](const Status& why) { lost(peer, why); },
                       .communicator = mesh_.communicator,
                       .deliveries = mesh_.options.deliveries,
                       .traffic = {mesh_.nics, &mesh_.nics->of_mesh(mesh_.communicator)}},
                      hooks_.sink);
  hooks_.sink->opened(peer);
}

void TcpPart::lost(int peer, const Status& why) {
  channels_.at(static_cast<std::size_t>(peer)).reset();
  if (!is_over_) hooks_.sink->lost(peer, why);
}

void TcpPart::look() {
  std::vector<Seen> seen(channels_.size());
  for (std::size_t peer = 0; peer < channels_.size(); ++peer) {
    if (channels_[peer] == nullptr) continue;
    seen[peer] = {channels_[peer]->activity(), channels_[peer]->counters()};
  }
  const std::lock_guard lock(mutex_);
  seen_ = std::move(seen);
}

void TcpPart::send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
                   std::uint64_t cookie, std::uint64_t priority) {
  if (LinkChannel* const to = channel(peer)) to->send(header, payload, cookie, priority);
}

void TcpPart::dismiss(int peer) {
  if (auto one = std::exchange(channels_.at(static_cast<std::size_t>(peer)), nullptr)) one->close();
}

void TcpPart::end(void (LinkChannel::*how)()) {
  is_over_ = true;
  for (auto& channel : channels_) {
    if (channel != nullptr) (std::exchange(channel, nullptr).get()->*how)();
  }
  const std::lock_guard lock(mutex_);
  handed_over_.clear();
}

void TcpPart::abort() { end(&LinkChannel::abort); }

void TcpPart::close() { end(&LinkChannel::close); }

Status share_out(const std::vector<std::unique_ptr<TcpPart>>& parts, int peer,
                 std::vector<Connection>& connections, const TcpLinkOptions& options) {
  const std::size_t threads = 1 + parts.size();
  if (connections.size() % threads != 0) {
    return remote_error(std::to_string(connections.size()) + " connections for " +
                        std::to_string(threads) + " threads");
  }
  const auto each = static_cast<std::ptrdiff_t>(connections.size() / threads);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto from = connections.begin() + static_cast<std::ptrdiff_t>(1 + i) * each;
    parts[i]->take_over(
        {peer, {std::make_move_iterator(from), std::make_move_iterator(from + each)}, options});
  }
  connections.resize(static_cast<std::size_t>(each));
  return Status::ok();
}

}  // namespace riffle
