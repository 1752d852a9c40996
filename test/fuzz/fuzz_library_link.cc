// A link over another NCCL plugin's library, to a peer that tells anything over TCP and sends
// anything over the library, which is slow, tells wrong sizes and fails now and then: frames arrive
// whole and in order or not at all, no message leaves that the peer has no receive for, no request
// is tested again that is over, and the link fails at most once.
//
// An input is a byte of settings and then a list of steps of three bytes: what happens, and two
// that say how.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "plugin/config/log.h"
#include "plugin/transport/nccl_net/exit_guard.h"
#include "plugin/transport/nccl_net/library_link.h"
#include "test/fuzz/step_library.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

using namespace nccl_net;

constexpr std::size_t kSlots = 3, kMostSteps = 64;
constexpr int kRank = 1, kPeer = 2;
constexpr std::uint64_t kCommunicator = 0xc0ffee;
constexpr std::uint64_t kMs = 1'000'000;

void drop_line(int, unsigned long, const char*, int, const char*, ...) {}
const bool kIsQuiet = (set_logger(drop_line), true);

struct World final : LibraryLink::Owner, FrameSink, StepLibrary::Watcher {
  explicit World(bool tells_sizes) : tells_size(tells_sizes), library(*this, tells_sizes) {
    link = std::make_unique<LibraryLink>(*this, library.net(), nullptr,
                                         LibraryLinkOptions{.rank = kRank,
                                                            .number = kPeer,
                                                            .peer = "node 2",
                                                            .communicator = kCommunicator,
                                                            .slots = kSlots,
                                                            .peer_timeout_ns = 1000 * kMs});
    link->start(time_ns, time_ns + 500 * kMs);
  }
  ~World() override { link->abort(); }

  void expect(bool ok, const char* what) {
    if (!ok && broken.empty()) broken = what;
  }

  // ---- the library ----

  void begins_to_send(std::span<const std::byte> message) override {
    expect(++sends <= granted, "a message that the peer has no receive for");
    check_sent(message.data(), message.size());
  }
  void breaks_the_contract(const char* what) override { expect(false, what); }

  // What this side sends is one frame after the other, cut into messages.
  void check_sent(const std::byte* data, std::size_t bytes) {
    const auto number = get<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(data));
    expect(number == (kCommunicator ^ std::uint64_t{kRank} << 40 ^ (sends - 1)), "a wrong number");
    std::size_t at = kMessageHeadBytes;
    if (left_of_sent == 0) {
      FrameBytes header;
      std::memcpy(header.data(), data + at, header.size());
      const Result<FrameHeader> decoded = decode(header);
      expect(decoded.is_ok() && !to_send.empty() && decoded->length == to_send.front(),
             "another frame than was sent");
      if (to_send.empty() || !decoded) return;
      left_of_sent = to_send.front();
      to_send.pop_front();
      at += header.size();
    }
    const std::size_t part = std::min(left_of_sent, kSlotBytes - at);
    expect(bytes == at + part, "a message of another size");
    left_of_sent -= part;
  }

  // ---- the peer ----

  // What the peer sends next, as it should be.
  std::vector<std::byte> next_message(std::size_t length, std::uint8_t pattern) {
    std::vector<std::byte> message(kMessageHeadBytes);
    put(reinterpret_cast<std::uint8_t*>(message.data()),
        kCommunicator ^ std::uint64_t{kPeer} << 40 ^ received);
    if (left_of_frame == 0) {
      left_of_frame = length;
      frame_pattern = pattern;
      FrameHeader header{.communicator = kCommunicator,
                         .length = static_cast<std::uint32_t>(length)};
      header.body[0] = pattern;
      const FrameBytes bytes = encode(header);
      const auto wire = std::as_bytes(std::span(bytes));
      message.insert(message.end(), wire.begin(), wire.end());
      frame = {length, pattern};
    }
    const std::size_t part = std::min(left_of_frame, kSlotBytes - message.size());
    message.insert(message.end(), part, static_cast<std::byte>(frame_pattern));
    left_of_frame -= part;
    return message;
  }
  void arrives(const std::vector<std::byte>& message, int told) {
    StepLibrary::Request* const request = library.oldest(true);
    if (request == nullptr) return;
    std::memcpy(request->room.data(), message.data(),
                std::min(message.size(), request->room.size()));
    request->is_done = true;
    request->bytes = told;
    ++received;
  }
  void message_arrives(std::uint8_t a, std::uint8_t b) {
    if (library.oldest(true) == nullptr) return;
    const bool is_right = (a & 0x0f) != 0;
    std::vector<std::byte> message = next_message(std::size_t{b} * (a % 3 == 0 ? 1500 : 50), b);
    int told = static_cast<int>(message.size());
    const bool is_last = left_of_frame == 0;
    if (!is_right) damage(a >> 4, &message, &told);
    arrives(message, told);
    if (is_right && is_last && !is_corrupt) expected.push_back(frame);
    is_corrupt = is_corrupt || !is_right;
  }
  // Only what a link has to notice.
  void damage(unsigned how, std::vector<std::byte>* message, int* told) const {
    switch (how % (tells_size ? 6 : 1)) {
      case 0:
        (*message)[how % kMessageHeadBytes] ^= std::byte{1};
        return;
      case 1:
        message->push_back(std::byte{0});
        ++*told;
        return;
      case 2:
        *told = 0;
        return;
      case 3:
        *told = static_cast<int>(kSlotBytes) + 1;
        return;
      case 4:
        *told = static_cast<int>(kMessageHeadBytes);
        return;
      default:
        *told = -7;
    }
  }

  void step(unsigned what, std::uint8_t a, std::uint8_t b);

  // ---- Owner ----

  FrameSink* sink() override { return hears ? this : nullptr; }
  void tell(int peer, const LibraryFrame& told, std::string payload) override {
    expect(peer == kPeer, "another peer is told");
    expect(told.kind >= LibraryFrame::kHandle && told.kind <= LibraryFrame::kCalls,
           "a message that no peer knows");
    expect(payload.size() <= kLibraryHandleBytes + kMostLibraryText, "a text that is too long");
    if (told.kind == LibraryFrame::kPosted) {
      expect(told.count > posted && told.count <= library.receives(), "posted what is not posted");
      posted = told.count;
    }
  }
  void is_up(int) override { expect(!std::exchange(was_up, true), "up twice"); }
  // (Also of a link that was never up.)
  void has_departed(int) override {
    expect(!std::exchange(departed_once, true), "departed twice");
    library.is_closed = true;
  }
  void has_failed(int, const Status& why, bool) override {
    expect(!std::exchange(has_failed_once, true), "failed twice");
    expect(!why.message().empty(), "failed without a reason");
    hears = false;
    library.is_closed = true;
  }

  // ---- FrameSink ----

  Result<std::byte*> get_receive_buffer(int, const FrameHeader& header) override {
    expect(header.communicator == kCommunicator, "a frame of another communicator");
    if (std::exchange(refuses, false)) {
      is_corrupt = true;
      return remote_error("refused by the sink");
    }
    room = std::make_unique<std::byte[]>(std::max<std::size_t>(header.length, 1));
    return room.get();
  }
  void arrived(int, const FrameHeader& header, std::byte* payload) override {
    expect(hears && !expected.empty(), "a frame that did not come");
    if (expected.empty()) return;
    const Frame due = expected.front();
    expected.pop_front();
    const bool is_right =
        payload == room.get() && header.length == due.length && header.body[0] == due.pattern &&
        std::all_of(payload, payload + header.length,
                    [&](std::byte b) { return b == static_cast<std::byte>(due.pattern); });
    expect(is_right, "a frame with other bytes");
    room.reset();
  }
  void sent(int, std::uint64_t cookie) override {
    expect(hears, "a frame counts as sent after the end");
    expect(under_way.erase(cookie) == 1, "a frame counts as sent twice, or was none");
  }
  void departed(int) override {}
  void lost(int, const Status&) override {}

  struct Frame {
    std::size_t length;
    std::uint8_t pattern;
  };
  bool tells_size, refuses = false, hears = true, said_goodbye = false;
  bool was_up = false, departed_once = false, has_failed_once = false, is_corrupt = false;
  std::uint64_t time_ns = 1000 * kMs, granted = 0, posted = 0, sends = 0, received = 0;
  std::deque<std::size_t> to_send;
  std::uint64_t cookies = 0;
  std::set<std::uint64_t> under_way;  // over in any order: what is dropped counts as sent at once
  std::size_t left_of_sent = 0, left_of_frame = 0;
  std::uint8_t frame_pattern = 0;
  Frame frame{};
  std::deque<Frame> expected;
  std::unique_ptr<std::byte[]> room;
  std::vector<std::byte> payload = std::vector<std::byte>(256 * 1200);
  std::string broken;
  StepLibrary library;
  std::unique_ptr<LibraryLink> link;
};

void World::step(unsigned what, std::uint8_t a, std::uint8_t b) {
  // What the peer says over TCP ends with its goodbye there.
  const auto heard = [&](std::uint8_t kind, std::uint64_t count, std::string_view text = {}) {
    if (!said_goodbye) link->heard({kind, count}, text);
  };
  switch (what) {
    case 0: {
      const std::string handle(a == 0 ? b : kLibraryHandleBytes, 'h');
      return heard(LibraryFrame::kHandle, 0, handle + (a == 1 ? "other" : library.net().name));
    }
    case 1:
      return heard(LibraryFrame::kCalls, b);
    case 2:
      granted = std::max<std::uint64_t>(granted, b < 200 ? b : ~std::uint64_t{0} - b);
      return heard(LibraryFrame::kPosted, b < 200 ? b : ~std::uint64_t{0} - b);
    case 3:
      return heard(LibraryFrame::kSent, b % 2 == 0 ? received : b);
    case 4:
      return heard(a % 2 == 0 ? LibraryFrame::kEnd : LibraryFrame::kEnded,
                   b < 128 ? received : b % 16);
    case 5:
      return heard(LibraryFrame::kFailed, 0, std::string(b, static_cast<char>(a)));
    case 6:
      if (a == LibraryFrame::kPosted) granted = std::max<std::uint64_t>(granted, b);
      return heard(a, b, std::string(b, 'x'));  // any kind
    case 7:
    case 8:
    case 9:
      time_ns += a * kMs / 4;
      if (link->is_active(time_ns)) link->poll(time_ns);
      return;
    case 10:
      return link->tick(b * 10 * kMs);
    case 11:
    case 12:
      return message_arrives(a, b);
    case 13:
      if (StepLibrary::Request* const request = library.oldest(false)) {
        request->is_done = true;
        request->bytes = static_cast<int>(request->room.size());
      }
      return;
    case 14:
      library.is_slow = !library.is_slow;
      return;
    case 15:
      library.fails = true;
      return;
    case 16:
      refuses = true;
      return;
    case 17: {
      if (!hears || !link->is_up()) return;
      const std::size_t bytes = std::size_t{b} * (a % 2 == 0 ? 1200 : 10);
      to_send.push_back(bytes);
      under_way.insert(++cookies);
      const FrameHeader header{.length = static_cast<std::uint32_t>(bytes)};
      return link->send(header, std::span(payload).first(bytes), cookies, 0);
    }
    case 18:
      hears = false;
      return link->close(time_ns);
    case 19:
      hears = false;
      link->abort();
      library.is_closed = true;
      return;
    case 20:
      if (std::exchange(said_goodbye, true)) return;
      link->take_rest();
      return link->peer_is_gone();
    case 21:
      if (!said_goodbye) (void)link->peer_is_up();
      return;
    default:
      (void)link->is_active(time_ns);
  }
}

}  // namespace

std::vector<Bytes> seeds() {
  // Up; then in its own ways: frames in, frames out, both ends.
  const Bytes up = {1, 0, 2, 0, 1, 0, 0, 7, 1, 0, 2, 0, 9, 7, 1, 0};
  const std::vector<Bytes> ways = {
      {11, 1, 10, 11, 1, 0, 7, 1, 0, 11, 3, 200, 7, 1, 0, 12, 1, 9, 7, 9, 0},
      {17, 0, 200, 7, 1, 0, 13, 0, 0, 13, 0, 0, 7, 1, 0, 17, 1, 30, 7, 1, 0, 13, 0, 0, 7, 8, 0},
      {17, 0, 9, 18, 0, 0, 7, 1, 0, 13, 0, 0, 7, 1, 0, 4, 0, 0, 4, 1, 0, 7, 1, 0},
      {11, 1, 10, 4, 0, 0, 7, 1, 0, 17, 1, 9, 7, 1, 0, 20, 0, 0, 17, 1, 9, 7, 1, 0, 19, 0, 0},
      {11, 16, 10, 7, 1, 0, 11, 1, 1, 7, 1, 0},
      {15, 0, 0, 7, 1, 0, 7, 255, 0, 7, 255, 0, 7, 255, 0},
      {14, 0, 0, 17, 0, 99, 7, 1, 0, 10, 0, 60, 10, 0, 60},
      {5, 65, 20, 7, 1, 0}};
  std::vector<Bytes> all = {{1, 0, 1, 0}, {0, 7, 255, 0, 7, 255, 0, 7, 255, 0}};
  for (const std::uint8_t tells : {0, 1}) {
    for (const Bytes& way : ways) {
      all.push_back(up);
      all.back()[0] = tells;
      all.back().insert(all.back().end(), way.begin(), way.end());
    }
  }
  return all;
}

void try_input(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const LibraryUse use;
  World world(input[0] % 2 != 0);
  for (std::size_t i = 1; i + 2 < std::min(input.size(), 1 + 3 * kMostSteps); i += 3) {
    world.step(input[i] % 23, input[i + 1], input[i + 2]);
    require(world.broken.empty(), world.broken);
  }
}

}  // namespace riffle::fuzz
