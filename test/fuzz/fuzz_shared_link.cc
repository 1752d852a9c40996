// A link that communicators share, to a peer that has proved one of them and then sends anything:
// JOIN, LEAVE, frames, in any order, on two streams. Each communicator hears what is its own and
// nothing more, none is opened without a proof, and all memory is given back.
//
// An input is a list of steps of three bytes: what happens, and two that say how. The highest bit
// holds back what the peer sends until a later step, the next one chooses the stream.
#include <sys/socket.h>

#include <array>
#include <list>
#include <memory>

#include "plugin/config/log.h"
#include "plugin/transport/tcp/join_frames.h"
#include "plugin/transport/tcp/shared_links.h"
#include "plugin/transport/tcp/tcp_link.h"
#include "test/fuzz/step_reactor.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

constexpr std::size_t kCommunicators = 4, kStreams = 2, kMostSteps = 48;
constexpr std::uint64_t kFirst = 1000, kStranger = 9999;
constexpr std::uint32_t kRank = 5, kPeer = 7;
using Verdict = SharedLinks::Verdict;

void drop_line(int, unsigned long, const char*, int, const char*, ...) {}
const bool kIsQuiet = (set_logger(drop_line), true);

struct World;

// One communicator, here.
struct Side final : FrameSink, SharedLinks::Mesh {
  World* world = nullptr;
  std::uint64_t communicator = 0;
  std::shared_ptr<LinkChannel> channel;
  bool is_open = false, was_asked = false, has_departed = false, refuses = false;
  int to_be_sent = 0;
  std::list<std::vector<std::byte>> rooms;  // each as large as its payload

  Result<std::byte*> get_receive_buffer(int, const FrameHeader& header) override;
  void arrived(int, const FrameHeader& header, std::byte* payload) override;
  void sent(int, std::uint64_t) override;
  void departed(int) override;
  void lost(int, const Status& why) override;
  // As TcpPeer: a peer that knows the secret joins, unless this side will not have it now.
  Verdict join(TcpLink& link, const JoinFrame& ask) override;
  void ask();
  void send(std::size_t bytes);
  void joined(const Status& outcome);
  void end();
};

struct World {
  World() {
    std::vector<Connection> near;
    for (std::size_t s = 0; s < kStreams; ++s) {
      int ends[2];
      require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "no socket");
      near.emplace_back(Fd::make([&] { return ends[0]; }));
      far.push_back(Fd::make([&] { return ends[1]; }));
    }
    for (std::size_t i = 0; i < kCommunicators; ++i) {
      sides[i].world = this;
      sides[i].communicator = kFirst + i;
    }
    Side& first = sides[0];
    first.channel =
        TcpLink::create(*reactor, std::move(near), {.peer = "the peer"},
                        {.peer = "the peer", .communicator = first.communicator}, &first);
    first.is_open = true;
    link = first.channel->link()->weak_from_this();
    shared = SharedLinks::of(*reactor);
    for (Side& side : sides) shared->add(side.communicator, kRank, side);
    first.channel->link()->share(shared, {});
    reactor->run();
  }

  void expect(bool ok, const char* what) {
    if (!ok && broken.empty()) broken = what;
  }
  void peer_sends(FrameHeader header, std::uint64_t communicator, std::size_t bytes = 0);
  template <class Frame>
  void peer_tells(const Frame& frame, std::uint64_t communicator) {
    peer_sends(header_of(frame), communicator);
  }
  void peer_reads();
  void step(std::uint8_t what, std::uint8_t a, std::uint8_t b);
  void peer_steps(unsigned what, std::uint8_t a, std::uint8_t b);
  void end();

  std::shared_ptr<StepReactor> reactor = std::make_shared<StepReactor>();
  std::vector<Fd> far;
  std::array<std::string, kStreams> held, unread;
  std::array<Side, kCommunicators> sides;
  std::array<std::uint64_t, kCommunicators> peer_frames{};  // of data
  std::weak_ptr<TcpLink> link;
  std::shared_ptr<SharedLinks> shared;
  SharedLinks::Verdict verdict = SharedLinks::Verdict::kTaken;
  std::size_t stream = 0;
  bool holds = false, is_deaf = false;
  std::vector<std::byte> payload = std::vector<std::byte>(32 << 10);
  std::string broken;
};

// ---- what a communicator hears ----

Result<std::byte*> Side::get_receive_buffer(int, const FrameHeader& header) {
  world->expect(is_open, "a frame of a communicator that is not open");
  world->expect(!has_departed, "a frame after the peer has departed");
  world->expect(header.communicator == communicator, "a frame of another communicator");
  if (refuses) return remote_error("refused by the sink");
  return rooms.emplace_back(std::max<std::size_t>(header.length, 1)).data();
}

void Side::arrived(int, const FrameHeader& header, std::byte* at) {
  world->expect(is_open && !has_departed, "a payload that is not expected");
  const auto room = std::ranges::find_if(rooms, [&](const auto& r) { return r.data() == at; });
  world->expect(room != rooms.end(), "a payload that came elsewhere, or twice");
  if (room == rooms.end()) return;
  const bool is_right = std::all_of(at, at + header.length, [&](std::byte b) {
    return b == static_cast<std::byte>(header.body[0]);
  });
  world->expect(is_right, "a payload with other bytes");
  rooms.erase(room);
}

void Side::sent(int, std::uint64_t) {
  world->expect(is_open, "a frame of a communicator that is over counts as sent");
  world->expect(--to_be_sent >= 0, "more frames left than were given");
}

void Side::departed(int) {
  world->expect(is_open && !std::exchange(has_departed, true), "departed twice, or never there");
}

void Side::lost(int, const Status& why) {
  world->expect(is_open, "the loss of a communicator that is not open");
  world->expect(!why.message().empty(), "a loss without a reason");
  end();
}

void Side::joined(const Status& outcome) {
  world->expect(std::exchange(was_asked, false), "joined twice");
  world->expect(outcome.is_ok() || !outcome.message().empty(), "refused without a reason");
  if (outcome) {
    is_open = true;
  } else {
    end();
  }
}

// No address that it gave is touched any more.
void Side::end() {
  is_open = was_asked = has_departed = false;
  to_be_sent = 0;
  rooms.clear();
}

// ---- what this side does ----

SharedLinks::Verdict Side::join(TcpLink& link, const JoinFrame& ask) {
  if (world->verdict != Verdict::kTaken) return world->verdict;
  if (ask.proof[0] != 1) return Verdict::kRefused;
  channel.reset();
  end();
  was_asked = true;
  channel = link.attach({.peer = "the peer",
                         .communicator = communicator,
                         .on_joined = [this](const Status& s) { joined(s); }},
                        this);
  link.send_own(JoinFrame{.step = JoinFrame::kWelcome, .from = kPeer, .to = kRank}, communicator);
  return Verdict::kTaken;
}

void Side::ask() {
  const std::shared_ptr<TcpLink> link = world->shared->find({}, kStreams, communicator);
  if (link == nullptr) return;
  channel.reset();
  end();
  was_asked = true;
  const auto check = [](const JoinFrame& f) {
    return f.proof[0] == 1 ? Status::ok() : remote_error("it proves nothing");
  };
  channel = link->attach({.peer = "the peer",
                          .communicator = communicator,
                          .on_joined = [this](const Status& s) { joined(s); },
                          .check_welcome = check},
                         this);
  link->send_own(JoinFrame{.from = kRank, .to = kPeer}, communicator);
}

void Side::send(std::size_t bytes) {
  if (channel == nullptr || !is_open) return;
  const FrameHeader header{.length = static_cast<std::uint32_t>(bytes)};
  ++to_be_sent;
  channel->send(header, std::span(world->payload).first(bytes), 0, 0);
}

// ---- what the peer does ----

void World::peer_sends(FrameHeader header, std::uint64_t communicator, std::size_t bytes) {
  header.communicator = communicator;
  header.length = static_cast<std::uint32_t>(bytes);
  const FrameBytes wire = encode(header);
  held[stream].append(wire.begin(), wire.end());
  held[stream].append(bytes, static_cast<char>(header.body[0]));
}

// All that this side writes is well-formed.
void World::peer_reads() {
  for (std::size_t s = 0; s < kStreams && !is_deaf; ++s) {
    std::array<char, 16 << 10> buffer;
    ssize_t n = 0;
    while (far[s].is_open() && (n = ::recv(far[s].get(), buffer.data(), buffer.size(), 0)) > 0) {
      unread[s].append(buffer.data(), static_cast<std::size_t>(n));
    }
    while (unread[s].size() >= kFrameHeaderBytes) {
      FrameBytes bytes;
      std::copy_n(unread[s].begin(), bytes.size(), bytes.begin());
      const Result<FrameHeader> header = decode(bytes);
      require(header.is_ok(), "this side sent no frame");
      if (unread[s].size() < kFrameHeaderBytes + header->length) break;
      unread[s].erase(0, kFrameHeaderBytes + header->length);
    }
  }
}

void World::peer_steps(unsigned what, std::uint8_t a, std::uint8_t b) {
  const std::size_t i = a % kCommunicators;
  const std::uint64_t communicator = sides[i].communicator;
  JoinFrame join{.step = static_cast<std::uint8_t>(what + 1), .from = kPeer, .to = kRank};
  if (what <= 1) join.proof[0] = b & 1;
  if ((b & 2) != 0) join.to ^= 1;
  switch (what) {
    case 0:
    case 1:
    case 2:
    case 3:
      return peer_tells(join, communicator);
    case 4: {
      const std::uint64_t frames = b < 128 ? peer_frames[i] : b % 8;
      const LeaveFrame leave{(b & 1) != 0, (b & 2) != 0, frames};
      return peer_tells(leave, communicator);
    }
    case 5: {
      FrameHeader header;
      header.body[0] = b;
      ++peer_frames[i];
      return peer_sends(header, communicator, std::size_t{b} * 67);
    }
    case 6: {
      FrameHeader header{.type = static_cast<FrameType>(1 + a % 15)};
      header.body.fill(b);
      return peer_sends(header, b % 2 == 0 ? communicator : kStranger, a < 16 ? b : 0);
    }
    case 7:
      return peer_sends({.type = FrameType::kHeartbeat}, 0);
    case 8:
      return peer_sends({.type = FrameType::kGoodbye}, 0);
    default: {  // anything
      held[stream].append(3, static_cast<char>(a));
      held[stream].append(1, static_cast<char>(b));
    }
  }
}

void World::step(std::uint8_t what, std::uint8_t a, std::uint8_t b) {
  stream = (what >> 6) & 1;
  holds = (what & 0x80) != 0;
  Side& side = sides[a % kCommunicators];
  switch (const unsigned kind = (what & 0x3f) % 22) {
    case 10:
      side.ask();
      break;
    case 11:
    case 12:
      if (side.channel == nullptr) break;
      side.end();
      kind == 11 ? side.channel->close() : side.channel->abort();
      break;
    case 13:
    case 14:
      side.send(std::size_t{b} * 120);
      break;
    case 15:
      verdict = static_cast<SharedLinks::Verdict>(b % 3);
      break;
    case 16:
      shared->wants(side, static_cast<int>(kPeer));
      break;
    case 17:
      reactor->pass_time();
      break;
    case 18:
      is_deaf = !is_deaf;
      break;
    case 19:
      side.refuses = !side.refuses;
      break;
    case 20:
      if (side.channel != nullptr && side.is_open) side.channel->use_streams(1 + b % kStreams);
      break;
    case 21:  // half of a frame
      if (held[stream].size() > 1) {
        const std::size_t half = held[stream].size() / 2;
        (void)::send(far[stream].get(), held[stream].data(), half, MSG_NOSIGNAL);
        held[stream].erase(0, half);
      }
      holds = true;
      break;
    default:
      peer_steps(kind, a, b);
  }
  if (!holds) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const ssize_t n = ::send(far[s].get(), held[s].data(), held[s].size(), MSG_NOSIGNAL);
      held[s].erase(0, n > 0 ? static_cast<std::size_t>(n) : 0);
    }
  }
  reactor->run();
  peer_reads();
}

void World::end() {
  for (Side& side : sides) {
    side.end();
    side.channel.reset();
  }
  for (Side& side : sides) shared->remove(side);
  shared.reset();
  far.clear();
  reactor->run();
  for (int i = 0; i < 4 && !link.expired(); ++i) {
    reactor->pass_time();
    reactor->run();
  }
  expect(link.expired(), "the link outlives all that used it");
}

}  // namespace

std::vector<Bytes> seeds() {
  constexpr std::uint8_t kHeartbeat = 7, kAsk = 0, kWelcome = 1, kOpen = 3, kLeave = 4, kData = 5;
  constexpr std::uint8_t kOwnAsk = 10, kClose = 11, kAbort = 12, kSend = 13, kVerdict = 15;
  constexpr std::uint8_t kWants = 16, kTime = 17, kHold = 0x80, kOther = 0x40;
  return {
      {kHeartbeat, 0, 0, kAsk, 1, 1, kOpen, 1, 0, kData, 1, 9, kSend, 1, 90, kLeave, 1, 0},
      {kHeartbeat, 0, 0, kOwnAsk, 2, 0, kWelcome, 2, 1, kData, 2, 200, kClose, 2, 0, kLeave, 2, 0},
      {kHeartbeat, 0, 0, kOwnAsk, 2, 0, kWelcome, 2, 0, kLeave, 2, 3, kAsk, 2, 1, kData, 2, 1},
      {kHeartbeat, 0, 0, kVerdict, 0, 2, kAsk, 3, 1, kVerdict, 0, 0, kWants, 0, 0, kOpen, 3, 0},
      {kHeartbeat, 0, 0, kAsk, 1, 1, kData | kHold, 1, 250, 21, 0, 0, kAbort, 1, 0, kTime, 0, 0},
      {kHeartbeat, 0, 0, kAsk, 1, 1, kData | kHold | kOther, 1, 80, kLeave, 1, 0, kData, 0, 7},
      {kData, 0, 255, kSend, 0, 255, 8, 0, 0, 8 | kOther, 0, 0, kClose, 0, 0, kTime, 0, 0}};
}

void try_input(std::span<const std::uint8_t> input) {
  World world;
  for (std::size_t i = 0; i + 2 < std::min(input.size(), 3 * kMostSteps); i += 3) {
    world.step(input[i], input[i + 1], input[i + 2]);
    require(world.broken.empty(), world.broken);
  }
  world.end();
  require(world.broken.empty(), world.broken);
}

}  // namespace riffle::fuzz
