// NET's receiving end against a sender that breaks every rule, on several streams side by side:
// parts out of turn, twice, too long, of receives that are over or never were. Once a receive is
// done nothing is written into its memory any more, and no more came than fits.
//
// An input is steps of a byte and what it needs: a receive is posted, a header arrives, a payload
// lands, time passes.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "plugin/config/log.h"
#include "plugin/net/net_frames.h"
#include "plugin/net/net_recv.h"
#include "test/fuzz/step_reactor.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

constexpr std::size_t kStreams = 4;
enum Step : std::uint8_t { kPost, kHeader, kLand, kTest, kFault, kSteps };

class SilentLink final : public Link {
 public:
  void set_sink(FrameSink* sink) override { sink_ = sink; }
  const std::string& peer() const override { return peer_; }
  std::size_t streams() const override { return kStreams; }
  void send(const FrameHeader& header, std::span<const std::byte>, std::uint64_t,
            std::uint64_t) override {
    require(header.type == net::PostedFrame::kType, "it only announces receives");
  }
  void flush() override {}
  void close() override { sink_ = nullptr; }
  void abort() override { sink_ = nullptr; }
  FrameSink* sink() const { return sink_; }  // null: it hears nothing more

 private:
  const std::string peer_ = "sender";
  FrameSink* sink_ = nullptr;
};

class World {
 public:
  explicit World(std::span<const std::uint8_t> input) : input_(input) {
    connection_ = new net::RecvConnection(*reactor_);
    connection_->attach(link_);
  }
  ~World() { net::close(connection_); }

  void run() {
    while (!input_.empty()) {
      switch (next() % kSteps) {
        case kPost:
          post();
          break;
        case kHeader:
          header_arrives(next());
          break;
        case kLand:
          land(next());
          break;
        case kTest:
          test();
          break;
        case kFault:
          offer({.type = FrameType::kFault, .length = next()}, next());
          break;
        default:
          break;
      }
    }
    for (std::size_t stream = 0; stream < kStreams; ++stream) land(stream);
    test();
  }

 private:
  struct Receive {
    net::Request* request;
    std::vector<std::byte> memory;
  };
  struct Way {
    FrameHeader header;
    std::byte* place;
  };

  std::uint8_t next() {
    if (input_.empty()) return 0;
    const std::uint8_t byte = input_.front();
    input_ = input_.subspan(1);
    return byte;
  }

  void post() {
    std::vector<std::byte> memory(next() % 16);
    void* const data = memory.data();
    const std::size_t size = memory.size();
    const int tag = 0;
    const Result<net::Request*> request =
        net::irecv(connection_, {&data, 1}, {&size, 1}, {&tag, 1});
    if (request && *request != nullptr) receives_.push_back({*request, std::move(memory)});
    reactor_->run();
  }

  void header_arrives(std::uint8_t stream) {
    net::MessageFrame frame;
    frame.receive = next();
    frame.offset = next();
    frame.total = next();
    offer(header_of(frame, next()), stream);
  }

  void offer(const FrameHeader& header, std::uint8_t stream) {
    std::optional<Way>& way = ways_[stream % kStreams];
    if (way || link_->sink() == nullptr) return;
    const Result<std::byte*> place = link_->sink()->get_receive_buffer(0, header);
    if (!place) {
      link_->sink()->lost(0, place.status());
      require(link_->sink() == nullptr, "a link that broke the protocol is given up");
      return;
    }
    require(*place != nullptr, "a place or an error");
    way = {header, *place};
  }

  void land(std::size_t stream) {
    const std::optional<Way> way = std::exchange(ways_[stream % kStreams], std::nullopt);
    if (!way || link_->sink() == nullptr) return;
    std::fill_n(way->place, way->header.length, std::byte{0xab});
    link_->sink()->arrived(0, way->header, way->place);
  }

  void test() {
    std::erase_if(receives_, [&](const Receive& receive) {
      int bytes = -1;
      const Result<bool> done = net::test(receive.request, &bytes);
      if (!done) return link_->sink() == nullptr;
      if (!*done) return false;
      require(bytes >= 0 && static_cast<std::size_t>(bytes) <= receive.memory.size(),
              "more bytes than fit");
      for (const std::optional<Way>& way : ways_) {
        require(!way || way->header.length == 0 || link_->sink() == nullptr ||
                    way->place < receive.memory.data() ||
                    way->place >= receive.memory.data() + receive.memory.size(),
                "bytes are on their way into a receive that is done");
      }
      return true;
    });
  }

  std::span<const std::uint8_t> input_;
  const std::shared_ptr<StepReactor> reactor_ = std::make_shared<StepReactor>();
  const std::shared_ptr<SilentLink> link_ = std::make_shared<SilentLink>();
  net::RecvConnection* connection_ = nullptr;
  std::vector<Receive> receives_;
  std::array<std::optional<Way>, kStreams> ways_;
};

}  // namespace

std::vector<Bytes> seeds() {
  const Bytes two_parts = {kPost, 8, kHeader, 0, 0,     0, 8,     4, kHeader, 1,
                           0,     4, 8,       4, kLand, 0, kLand, 1, kTest};
  const Bytes a_part_twice = {kPost, 8, kHeader, 0, 0,     0,       8,     4,     kHeader,
                              1,     0, 4,       8, 4,     kHeader, 2,     0,     0,
                              8,     4, kLand,   0, kLand, 1,       kTest, kLand, 2};
  const Bytes empty_twice = {kPost, 8, kHeader, 0, 0,     0, 0,     0, kHeader, 1,
                             0,     0, 0,       0, kLand, 0, kLand, 1, kTest};
  return {
      two_parts, a_part_twice, empty_twice, {kPost, 1, kPost, 2, kFault, 9, 0, kLand, 0, kTest}};
}

void try_input(std::span<const std::uint8_t> input) {
  set_log_level(LogLevel::kWarn);
  World(input).run();
}

}  // namespace riffle::fuzz
