// Frames of sparse exchanges as a peer may send them, to one runner of three nodes. The input is a
// script: calls are posted, frames come (headers and payloads as they like, payloads later than
// their headers), own frames leave. A frame is taken or refused with a reason; no result is written
// where no message has come; after the end no memory of a call is touched, whatever still comes.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "lab/memory/memory_network.h"
#include "plugin/collective/sparse/sparse_frame.h"
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/transport/base/mesh.h"
#include "test/fuzz/target.h"
#include "test/sparse_runner_setup.h"

namespace riffle::fuzz {
namespace {

constexpr int kNodes = 3;
constexpr std::uint64_t kElements = 1024;  // the least that a run takes
constexpr std::size_t kCalls = 3;          // the last one is dense
constexpr float kUntouched = -77.0F;

enum Op : std::uint8_t { kFrame = 0, kPost = 1, kPayload = 2, kSent = 3, kOps = 4 };

// A frame in the script: op (and in its upper bits the peer, and whether the payload comes at
// once), then this, then the payload.
struct Wire {
  std::uint8_t seq;
  std::uint8_t flags;
  std::uint16_t round_and_step;
  std::uint32_t key, offset, length;
  std::uint64_t total;
};
static_assert(sizeof(Wire) == 24);

constexpr std::uint8_t kSecondPeer = 4, kPayloadLater = 8;

float gradient(int rank, std::size_t call, std::uint64_t i) {
  const std::uint64_t n = i * 7919 + static_cast<std::uint64_t>(rank) * 104729 + call * 1299709;
  return static_cast<float>(n % 1009) / 64 - 8;
}

// The calls of one node.
struct Calls {
  explicit Calls(int rank) : run(testing::sparse_run_of(rank, kNodes, kCalls, kElements)) {
    for (std::size_t call = 0; call < kCalls; ++call) {
      send[call].resize(kElements);
      recv[call].assign(kElements, kUntouched);
      for (std::uint64_t i = 0; i < kElements; ++i) send[call][i] = gradient(rank, call, i);
      SparseSegment& s = segment(call);
      s.send = reinterpret_cast<const std::byte*>(send[call].data());
      s.recv = reinterpret_cast<std::byte*>(recv[call].data());
      s.density = testing::kSparseDensity;
      s.digest = static_cast<std::uint32_t>(11 + call);
      s.is_dense = call == kCalls - 1;
    }
  }
  SparseSegment& segment(std::size_t call) const { return run->segments(call)[0]; }
  Operation::State state(std::size_t call) const { return segment(call).operation.state; }
  void post(SparseRunner& runner, std::size_t call) const {
    segment(call).operation.state = Operation::State::kRunning;
    runner.submit(&segment(call));
  }

  std::unique_ptr<SparseRun> run;
  std::vector<float> send[kCalls], recv[kCalls];
};

// Nothing but a place for what is sent.
class Wires final : public Mesh {
 public:
  int rank() const override { return 0; }
  int size() const override { return kNodes; }
  void open(int) override {}
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t) override {
    require(peer > 0 && peer < kNodes, "sends to nobody");
    require(header.length == payload.size() && payload.size() <= kMaxFramePayload,
            "sends a frame of another length");
    under_way.push_back({payload, cookie});
  }
  void dismiss(int) override {}
  std::uint64_t now_ns() const override { return 0; }
  void abort() override {}

  struct Sent {
    std::span<const std::byte> payload;
    std::uint64_t cookie;
  };
  std::deque<Sent> under_way;
};

class Script {
 public:
  void run(std::span<const std::uint8_t> input) {
    while (!input.empty() && !is_over_) {
      const std::uint8_t op = input[0];
      input = input.subspan(1);
      switch (op % kOps) {
        case kFrame:
          input = frame(op, input);
          break;
        case kPost:
          if (posted_ < kCalls) calls_->post(runner_, posted_++);
          break;
        case kPayload:
          payload_comes();
          break;
        default:
          leaves();
      }
    }
    while (!is_over_ && !placed_.empty()) payload_comes();
    while (!is_over_ && !wires_.under_way.empty()) leaves();
    look();
    fail();
  }
  std::size_t done() const { return done_; }

 private:
  struct Placed {
    int peer;
    FrameHeader header;
    std::byte* at;
    Bytes payload;
  };

  std::span<const std::uint8_t> frame(std::uint8_t op, std::span<const std::uint8_t> input) {
    Wire w{};
    std::memcpy(&w, input.data(), std::min(input.size(), sizeof w));
    input = input.subspan(std::min(input.size(), sizeof w));
    Placed p;
    p.peer = (op & kSecondPeer) != 0 ? 2 : 1;
    SparseFrame said;
    said.segment = w.seq < 0x80 ? w.seq : ~std::uint64_t{w.seq};
    said.is_in_doubt = (w.flags & 1) != 0;
    said.round = static_cast<std::uint8_t>(w.round_and_step >> 8);
    said.step = static_cast<std::uint8_t>(w.round_and_step);
    said.least_digest = w.key;
    said.largest_digest = static_cast<std::uint32_t>(w.total >> 32);
    said.total = static_cast<std::uint32_t>(w.total);
    said.offset = w.offset;
    p.header = header_of(said, std::min<std::size_t>(w.length, kMaxFramePayload));
    const std::size_t here = std::min<std::size_t>(input.size(), p.header.length);
    const Result<std::byte*> at = runner_.get_receive_buffer(p.peer, p.header);
    if (!at) {  // the peer is lost, and with it the communicator
      require(!at.status().message().empty(), "refused without a reason");
      is_over_ = true;
      return input;
    }
    p.at = *at;
    p.payload.assign(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(here));
    p.payload.resize(p.header.length);
    placed_.push_back(std::move(p));
    if ((op & kPayloadLater) == 0) {
      std::swap(placed_.front(), placed_.back());
      payload_comes();
    }
    return input.subspan(here);
  }
  void payload_comes() {
    if (placed_.empty()) return;
    if (payloads_ == 0 && calls_ != nullptr) look();
    const Placed p = std::move(placed_.front());
    placed_.pop_front();
    if (!p.payload.empty()) std::memcpy(p.at, p.payload.data(), p.payload.size());
    ++payloads_;
    runner_.arrived(p.peer, p.header, p.at);
  }
  void leaves() {
    if (wires_.under_way.empty()) return;
    const Wires::Sent sent = wires_.under_way.front();
    wires_.under_way.pop_front();
    const Bytes copy(
        reinterpret_cast<const std::uint8_t*>(sent.payload.data()),
        reinterpret_cast<const std::uint8_t*>(sent.payload.data()) + sent.payload.size());
    runner_.sent(sent.cookie);
  }
  void look() {
    done_ = 0;
    for (std::size_t call = 0; call < kCalls; ++call) {
      done_ += call < posted_ && calls_->state(call) == Operation::State::kDone;
      if (call < posted_ && payloads_ > 0) continue;
      require(std::ranges::all_of(calls_->recv[call], [](float x) { return x == kUntouched; }),
              "a result before the call, or without a message");
    }
    require(done_ == 0 || payloads_ > 0, "over without a message");
  }
  void fail() {
    runner_.fail();
    require(runner_.is_idle(), "not idle after its end");
    for (std::size_t call = 0; call < posted_; ++call) {
      require(calls_->state(call) != Operation::State::kRunning, "a call runs on after the end");
    }
    calls_.reset();  // sanitizers see who touches it now
    SparseFrame said;
    said.total = 1000;
    const FrameHeader header = header_of(said, 1000);
    const Result<std::byte*> at = runner_.get_receive_buffer(1, header);
    require(at.is_ok() && *at != nullptr, "no place for late frames");
    std::memset(*at, 0x55, header.length);
    runner_.arrived(1, header, *at);
    while (!placed_.empty()) payload_comes();
    while (!wires_.under_way.empty()) leaves();
  }

  Wires wires_;
  std::unique_ptr<Calls> calls_ = std::make_unique<Calls>(0);
  SparseRunner runner_{&wires_, SparseRunner::Options{.most_elements = kElements},
                       [this](int peer, const Status& why) {
                         require(peer > 0 && peer < kNodes, "blames nobody");
                         require(!why.message().empty(), "blames without a reason");
                       }};
  std::deque<Placed> placed_;
  std::size_t posted_ = 0, done_ = 0, payloads_ = 0;
  bool is_over_ = false;
};

// A node of a true exchange; node 0 writes down what it hears.
class Node final : public FrameSink {
 public:
  Node(Mesh& mesh, int rank, Bytes* script) : calls_(rank), script_(script) {
    runner_ = std::make_unique<SparseRunner>(
        &mesh, SparseRunner::Options{.most_elements = kElements},
        [](int, const Status& why) { require(false, why.message()); });
  }
  void post(std::size_t call, bool is_certain) {
    if (script_ != nullptr) script_->push_back(kPost);
    calls_.segment(call).is_certain = is_certain;
    calls_.post(*runner_, call);
  }
  void opened(int) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return runner_->get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    if (script_ != nullptr) {
      const auto said = frame_of<SparseFrame>(h);
      const Wire w = {static_cast<std::uint8_t>(said.segment),
                      static_cast<std::uint8_t>(said.is_in_doubt),
                      static_cast<std::uint16_t>(said.round << 8 | said.step),
                      said.least_digest,
                      said.offset,
                      h.length,
                      std::uint64_t{said.largest_digest} << 32 | said.total};
      script_->push_back(peer == 2 ? kFrame | kSecondPeer : kFrame);
      const auto* head = reinterpret_cast<const std::uint8_t*>(&w);
      const auto* body = reinterpret_cast<const std::uint8_t*>(payload);
      script_->insert(script_->end(), head, head + sizeof w);
      script_->insert(script_->end(), body, body + h.length);
    }
    runner_->arrived(peer, h, payload);
  }
  void sent(int, std::uint64_t cookie) override {
    if (script_ != nullptr) script_->push_back(kSent);
    runner_->sent(cookie);
  }
  void departed(int) override {}
  void lost(int, const Status&) override {}

 private:
  Calls calls_;
  std::unique_ptr<SparseRunner> runner_;
  Bytes* const script_;
};

Bytes conversation(std::uint64_t seed, bool has_doubt) {
  Bytes script;
  MemoryNetwork network(kNodes, seed);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int r = 0; r < kNodes; ++r) {
    nodes.push_back(std::make_unique<Node>(network.mesh(r), r, r == 0 ? &script : nullptr));
    network.set_sink(r, nodes.back().get());
  }
  testing::open_links(network, kNodes);
  for (std::size_t call = 0; call < kCalls; ++call) {
    for (int r = 0; r < kNodes; ++r) nodes[r]->post(call, !has_doubt || r != 1 || call != 0);
    if (seed % 2 == 0) continue;  // all at once, or one after the other
    while (network.step()) {
    }
  }
  while (network.step()) {
  }
  return script;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    all.push_back(conversation(seed, seed > 2));
    Script script;
    script.run(all.back());
    require(script.done() == kCalls, "a true conversation does not end with all results");
  }
  return all;
}

void try_input(std::span<const std::uint8_t> input) {
  Script script;
  script.run(input);
}

}  // namespace riffle::fuzz
