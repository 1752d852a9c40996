#include "plugin/transport/tcp/tcp_peer.h"

#include <algorithm>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/handshake/process_mark.h"
#include "plugin/transport/handshake/routes.h"

namespace riffle {
namespace {

// A link that is coming is worth so long, of the connect timeout this part at most; looked for so
// often.
constexpr std::uint64_t kPatienceNs = 1'000'000'000, kPatiencePart = 4, kLookNs = 10'000'000;

}  // namespace

TcpPeer::TcpPeer(const MeshParts& mesh, Owner& owner, TimerService& timers, int rank)
    : mesh_(mesh),
      owner_(owner),
      timers_(timers),
      rank_(rank),
      address_(to_text(handle().endpoints.front())),
      name_("node " + std::to_string(rank) + " (" + address_ + ")") {}

const HandleContent& TcpPeer::handle() const {
  return mesh_.handles[static_cast<std::size_t>(rank_)];
}

// For calls from below, where an exception would be one of the peer's connection alone.
template <class F>
void TcpPeer::guarded(F&& f) {
  catching(f, [this](const Status& why) { owner_.failed(why); });
}

// ---- opening ----

void TcpPeer::ask() {
  if (state_ != State::kIdle) return;
  state_ = State::kOpening;
  deadline_ns_ = Reactor::now_ns() + mesh_.options.connect_timeout_ns;
  if (const Status s = check_encryption(); !s) {
    timer_ = timers_.call_at(Reactor::now_ns(), [this, s] { lost(s); });
  } else if (connects()) {
    const std::uint64_t most_ns = mesh_.options.connect_timeout_ns / kPatiencePart;
    join_or_connect(Reactor::now_ns() + std::min(kPatienceNs, most_ns));
  } else {
    timer_ = timers_.call_at(deadline_ns_, [this] {
      lost(timeout_error("did not connect to this node within RIFFLE_CONNECT_TIMEOUT"));
    });
    owner_.look_again();  // its streams may be here already, or its ask
    owner_.set_doors();
  }
}

// All handles are here, so all nodes notice at once, and not the two ends of one link.
Status TcpPeer::check_encryption() const {
  return check_same_mode(handle().encryption, mode_of(mesh_.transport.encryption));
}

int TcpPeer::first_streams() const {
  return std::min(streams_for(handle().endpoints, mesh_.own, mesh_.streams),
                  kMaxStreams / mesh_.threads());
}

void TcpPeer::connect() {
  if (mesh_.shared != nullptr) coming_.emplace(mesh_.shared, process_of(handle().communicator));
  const std::size_t streams = all_first_streams();
  const std::uint64_t session = random_u64();
  for (std::size_t i = 0; i < streams; ++i) {
    const Hello own = hello(i, streams, session);
    connectors_.push_back(std::make_unique<Connector>(
        *mesh_.reactor,
        ConnectorOptions{.to = handle(),
                         .hello = own,
                         .own = mesh_.own,
                         .deadline_ns = deadline_ns_,
                         .congestion = mesh_.transport.congestion,
                         .encryption = mesh_.transport.encryption},
        [this, own](Result<Connection> one) { guarded([&] { connected(std::move(one), own); }); }));
  }
}

void TcpPeer::connected(Result<Connection> one, const Hello& own) {
  if (!one && one.status().code() == Code::kInternal) {
    return owner_.failed(one.status());  // this side's, not the peer's
  }
  if (!one) return unreachable(one.status());
  joined(std::move(*one), own);
}

Hello TcpPeer::hello(std::size_t stream, std::size_t streams, std::uint64_t session) const {
  return {.communicator = mesh_.communicator,
          .session = session,
          .rank = static_cast<std::uint32_t>(mesh_.rank),
          .stream = static_cast<std::uint16_t>(stream),
          .streams = static_cast<std::uint16_t>(streams)};
}

Status TcpPeer::admit(const Hello& hello) const {
  if (state_ == State::kOver || (state_ == State::kUp && !is_one_more(hello))) {
    return remote_error(name_ + " is already connected or lost");
  }
  return check_streams(hello);
}

bool TcpPeer::is_one_more(const Hello& h) const {
  const TcpLink* const link = channel_->link();
  return link != nullptr && link->takes_streams() && h.session == link->session() &&
         h.stream >= link->first_streams() && link->streams() < kMaxStreams;
}

void TcpPeer::joined(Connection connection, const Hello& hello) {
  retry_within(connection.socket.get(), mesh_.options.peer_timeout_ns);
  if (state_ == State::kUp) {
    if (TcpLink* const link = channel_->link()) link->add(std::move(connection), connects());
    return owner_.set_doors();
  }
  streams_.add(std::move(connection), hello);
  start_if_complete();
}

void TcpPeer::start_if_complete() {
  if (state_ != State::kOpening || !streams_.is_complete()) return;
  const std::uint64_t session = streams_.session();
  const bool has_crc = mesh_.transport.payload_crc && !mesh_.transport.encryption.is_on;
  const TcpLinkOptions options = {.peer = name_,
                                  .peer_timeout_ns = mesh_.options.peer_timeout_ns,
                                  .payload_crc = has_crc,
                                  .session = session,
                                  .is_accepted = !connects()};
  std::vector<Connection> connections = streams_.take();
  if (const Status s = share_out(mesh_.further, rank_, connections, options); !s) return lost(s);
  auto channel = TcpLink::create(*mesh_.reactor, std::move(connections), options, channel_options(),
                                 mesh_.sink);
  if (mesh_.shared != nullptr) channel->link()->share(mesh_.shared, terms());
  up(std::move(channel));
}

ChannelOptions TcpPeer::channel_options() {
  return {.number = rank_,
          .peer = name_,
          .on_lost = [this](const Status& why) { lost(why); },
          .communicator = mesh_.communicator,
          .deliveries = mesh_.options.deliveries,
          .traffic = {mesh_.nics, &mesh_.nics->of_mesh(mesh_.communicator)}};
}

void TcpPeer::up(std::shared_ptr<LinkChannel> channel) {
  stop_opening();
  if (joining_ != nullptr) std::exchange(joining_, nullptr)->abort();
  channel_ = std::move(channel);
  state_ = State::kUp;
  use(static_cast<int>(weight_));
  owner_.set_doors();
  mesh_.sink->opened(rank_);
}

// ---- joining a link that is up ----

LinkTerms TcpPeer::terms() const {
  return {.process = process_of(handle().communicator),
          .peer_timeout_ns = mesh_.options.peer_timeout_ns,
          .payload_crc = mesh_.transport.payload_crc,
          .congestion = mesh_.transport.congestion,
          .nics = mesh_.nics,
          .encryption = mesh_.transport.encryption};
}

void TcpPeer::join_or_connect(std::uint64_t patience_until_ns) {
  if (ask_to_join()) return;
  if (mesh_.shared == nullptr || Reactor::now_ns() >= patience_until_ns ||
      !mesh_.shared->is_coming(process_of(handle().communicator))) {
    return connect();
  }
  timer_ = timers_.call_at(Reactor::now_ns() + kLookNs,
                           [this, patience_until_ns] { join_or_connect(patience_until_ns); });
}

std::shared_ptr<TcpLink> TcpPeer::link_to_join() const {
  if (mesh_.shared == nullptr) return nullptr;
  return mesh_.shared->find(terms(), static_cast<std::size_t>(first_streams()), mesh_.communicator);
}

std::size_t TcpPeer::descriptors_to_open() const {
  if (state_ != State::kIdle || link_to_join() != nullptr) return 0;
  return all_first_streams();
}

bool TcpPeer::ask_to_join() {
  const std::shared_ptr<TcpLink> link = link_to_join();
  if (link == nullptr) return false;
  JoinFrame ask = {.step = JoinFrame::kAsk,
                   .from = static_cast<std::uint32_t>(mesh_.rank),
                   .to = static_cast<std::uint32_t>(rank_)};
  ask.proof = proof_of(ask, mesh_.communicator, link->mark(),
                       Credentials(handle().secret, mesh_.transport.encryption));
  ChannelOptions options = channel_options();
  options.on_joined = [this](const Status& outcome) { join_ended(outcome); };
  options.check_welcome = [this, mark = link->mark()](const JoinFrame& welcome) {
    return check_welcome(welcome, mark);
  };
  joining_ = link->attach(std::move(options), mesh_.sink);
  link->send_own(ask, mesh_.communicator);
  // The link may be up in the books alone: half of the time is for a new one.
  const std::uint64_t patience_ns = mesh_.options.connect_timeout_ns / 2;
  timer_ = timers_.call_at(deadline_ns_ - patience_ns, [this] {
    std::exchange(joining_, nullptr)->abort();
    connect();
  });
  return true;
}

Status TcpPeer::check_welcome(const JoinFrame& welcome, const LinkMark& link) const {
  if (welcome.from != static_cast<std::uint32_t>(mesh_.rank) ||
      welcome.to != static_cast<std::uint32_t>(rank_)) {
    return remote_error("it answers another node");
  }
  return check_proof(welcome, mesh_.communicator, link,
                     Credentials(handle().secret, mesh_.transport.encryption));
}

SharedLinks::Verdict TcpPeer::join(TcpLink& link, const JoinFrame& ask) {
  if (state_ == State::kIdle) return SharedLinks::Verdict::kTooEarly;
  if (state_ != State::kOpening || connects() || joining_ != nullptr) {
    return SharedLinks::Verdict::kRefused;
  }
  const Credentials own(mesh_.secret, mesh_.transport.encryption);
  if (const Status s = check_proof(ask, mesh_.communicator, link.mark(), own); !s) {
    log_warn("{} asks for a communicator over a connection of another one: {}", name_, s.message());
    return SharedLinks::Verdict::kRefused;
  }
  if (!are_same(link.terms(), terms()) || link.has(mesh_.communicator)) {
    return SharedLinks::Verdict::kRefused;
  }
  ChannelOptions options = channel_options();
  options.on_joined = [this](const Status& outcome) { join_ended(outcome); };
  joining_ = link.attach(std::move(options), mesh_.sink);
  JoinFrame welcome = {.step = JoinFrame::kWelcome, .from = ask.from, .to = ask.to};
  welcome.proof = proof_of(welcome, mesh_.communicator, link.mark(), own);
  link.send_own(welcome, mesh_.communicator);
  return SharedLinks::Verdict::kTaken;
}

// The side that does not connect waits for what comes instead.
void TcpPeer::join_ended(const Status& outcome) {
  const std::shared_ptr<LinkChannel> joined = std::exchange(joining_, nullptr);
  if (state_ != State::kOpening) return;
  if (outcome) return guarded([&] { up(joined); });
  if (!connects()) return;
  timers_.cancel(timer_);
  guarded([&] { connect(); });
}

// ---- weights ----

bool TcpPeer::is_expected() const {
  if (connects()) return false;
  if (state_ == State::kOpening) return true;
  const TcpLink* const link = state_ == State::kUp ? channel_->link() : nullptr;
  return link != nullptr && asked_ > link->first_streams() &&
         link->streams() < link->asked_streams();
}

void TcpPeer::use(int weight) {
  weight_ = static_cast<std::size_t>(weight);
  TcpLink* const link = state_ == State::kUp ? channel_->link() : nullptr;
  if (link == nullptr) return;
  const std::size_t streams = std::min<std::size_t>(weight_ * link->first_streams(), kMaxStreams);
  channel_->use_streams(streams);
  if (connects()) return connect_up_to(streams);
  asked_ = std::max(asked_, streams);
  link->ask_streams(streams);
}

void TcpPeer::connect_up_to(std::size_t streams) {
  TcpLink& link = *channel_->link();
  for (std::size_t next = link.asked_streams(); next < streams; ++next) {
    connectors_.push_back(std::make_unique<Connector>(
        *mesh_.reactor,
        ConnectorOptions{.to = handle(),
                         .hello = hello(next, next + 1, link.session()),
                         .own = mesh_.own,
                         .deadline_ns = Reactor::now_ns() + mesh_.options.connect_timeout_ns,
                         .congestion = mesh_.transport.congestion,
                         .encryption = mesh_.transport.encryption},
        [this](Result<Connection> one) { guarded([&] { added(std::move(one)); }); }));
  }
  link.ask_streams(streams);
}

void TcpPeer::added(Result<Connection> one) {
  TcpLink* const link = channel_->link();
  if (one && link != nullptr) {
    retry_within(one->socket.get(), mesh_.options.peer_timeout_ns);
    return link->add(std::move(*one), true);
  }
  if (!one) {
    log_info("going on without one more connection to {}: {}", name_, one.status().message());
  }
}

// ---- the end ----

void TcpPeer::lost(const Status& why) {
  unreachable(Status(why.code(), address_ + ": " + why.message()));
}

// `why` tells the address.
void TcpPeer::unreachable(const Status& why) {
  end();
  channel_.reset();
  if (mesh_.sink != nullptr) mesh_.sink->lost(rank_, why);
}

void TcpPeer::abort() {
  end();
  if (channel_ != nullptr) std::exchange(channel_, nullptr)->abort();
}

void TcpPeer::close() {
  end();
  if (channel_ != nullptr) std::exchange(channel_, nullptr)->close();
}

void TcpPeer::stop_opening() {
  connectors_.clear();
  coming_.reset();
  timers_.cancel(timer_);
}

void TcpPeer::end() {
  stop_opening();
  streams_.clear();
  state_ = State::kOver;
  if (joining_ != nullptr) std::exchange(joining_, nullptr)->abort();
  // What follows tells of a loss, and a door that cannot be opened must not keep it.
  catching([this] { owner_.set_doors(); },
           [](const Status& why) { log_caught("at the doors of a mesh", why); });
}

}  // namespace riffle
