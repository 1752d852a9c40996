#include "plugin/transport/tcp/shared_links.h"

#include <algorithm>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/transport/crypto/key_file.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
namespace {

bool is_same_key(const PresharedKey* a, const PresharedKey* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::ranges::equal(a->bytes(), b->bytes());
}

}  // namespace

bool are_same(const LinkTerms& a, const LinkTerms& b) {
  return a.process == b.process && a.peer_timeout_ns == b.peer_timeout_ns &&
         a.payload_crc == b.payload_crc && a.congestion == b.congestion && a.nics == b.nics &&
         a.encryption.is_on == b.encryption.is_on && a.encryption.ciphers == b.encryption.ciphers &&
         is_same_key(a.encryption.key.get(), b.encryption.key.get());
}

std::shared_ptr<SharedLinks> SharedLinks::of(Reactor& reactor) {
  return reactor.common<SharedLinks>(Reactor::Common::kSharedLinks);
}

void SharedLinks::remove(TcpLink& link) {
  std::erase(links_, &link);
  std::erase_if(waiting_, [&](const Waiting& w) { return w.link == &link; });
}

SharedLinks::Coming::Coming(std::shared_ptr<SharedLinks> among, std::uint64_t process)
    : among_(std::move(among)), process_(process) {
  ++among_->coming_[process_];
}

SharedLinks::Coming::~Coming() {
  const auto own = among_->coming_.find(process_);
  if (--own->second == 0) among_->coming_.erase(own);
}

// One that is up here and not yet known to be at the other end was coming a moment ago.
bool SharedLinks::is_coming(std::uint64_t process) const {
  return coming_.contains(process) || std::ranges::any_of(links_, [&](const TcpLink* link) {
           return link->terms().process == process && link->takes_streams() && !link->is_heard();
         });
}

std::shared_ptr<TcpLink> SharedLinks::find(const LinkTerms& terms, std::size_t streams,
                                           std::uint64_t communicator) const {
  for (TcpLink* const link : links_) {
    if (link->is_joinable() && link->first_streams() == streams && !link->has(communicator) &&
        are_same(link->terms(), terms)) {
      return link->shared_from_this();
    }
  }
  return nullptr;
}

void SharedLinks::add(std::uint64_t communicator, int rank, Mesh& mesh) {
  meshes_.push_back({communicator, static_cast<std::uint32_t>(rank), &mesh});
}

void SharedLinks::remove(Mesh& mesh) {
  const auto own = std::ranges::find(meshes_, &mesh, &Entry::mesh);
  if (own == meshes_.end()) return;
  const Entry entry = *own;
  meshes_.erase(own);
  catching(
      [&] {
        while (const auto w = take_waiting(entry, {})) refuse(*w);
      },
      [](const Status& why) { log_caught("refusing to share a connection", why); });
}

void SharedLinks::wants(Mesh& mesh, int peer) {
  const auto own = std::ranges::find(meshes_, &mesh, &Entry::mesh);
  if (own == meshes_.end()) return;
  const Entry entry = *own;
  while (const auto w = take_waiting(entry, peer)) {
    if (mesh.join(*w->link, w->ask) != Verdict::kTaken) refuse(*w);
  }
}

std::optional<SharedLinks::Waiting> SharedLinks::take_waiting(const Entry& of,
                                                              std::optional<int> peer) {
  const auto at = std::ranges::find_if(waiting_, [&](const Waiting& w) {
    return w.communicator == of.communicator && w.ask.to == of.rank &&
           (!peer || w.ask.from == static_cast<std::uint32_t>(*peer));
  });
  if (at == waiting_.end()) return std::nullopt;
  const Waiting taken = *at;
  waiting_.erase(at);
  return taken;
}

void SharedLinks::refuse(const Waiting& w) {
  w.link->send_own(JoinFrame{.step = JoinFrame::kRefuse}, w.communicator);
}

bool SharedLinks::asked(TcpLink& link, std::uint64_t communicator, const JoinFrame& ask) {
  const auto is_meant = [&](const Entry& e) {
    return e.communicator == communicator && e.rank == ask.to;
  };
  const auto entry = std::ranges::find_if(meshes_, is_meant);
  Verdict verdict = Verdict::kTooEarly;
  if (entry != meshes_.end()) verdict = entry->mesh->join(link, ask);
  if (verdict != Verdict::kTooEarly) return verdict == Verdict::kTaken;
  const auto of_it = std::ranges::count(waiting_, &link, &Waiting::link);
  if (static_cast<std::size_t>(of_it) >= kMostWaiting) return false;
  waiting_.push_back({&link, communicator, ask});
  return true;
}

void SharedLinks::withdrawn(const TcpLink& link, std::uint64_t communicator) {
  std::erase_if(waiting_, [&](const Waiting& w) {
    return w.link == &link && w.communicator == communicator;
  });
}

}  // namespace riffle
