// A link with two channels, or one and what may join, with the test as the peer.
#pragma once

#include "plugin/transport/tcp/join_frames.h"
#include "test/plugin/transport/link_harness.h"

namespace riffle {

inline constexpr std::uint64_t kOther = 0xbeef;

class LinkChannels : public LinkTest {
 protected:
  ~LinkChannels() override {
    reactor_->run_and_wait([&] { other_.reset(); });
  }
  void start_two(std::size_t streams) {
    start(streams);
    reactor_->run_and_wait([&] {
      other_ = link_->link()->attach({.number = 7, .peer = "the test", .communicator = kOther},
                                     &other_sink_);
    });
  }
  template <class F>
  void on_reactor(F f) {
    reactor_->run_and_wait(f);
  }
  template <class Frame>
  void tell(std::uint64_t communicator, const Frame& frame, std::size_t stream = 0) {
    FrameHeader header = header_of(frame);
    header.communicator = communicator;
    write_frame(header, "", stream);
  }
  void write_of(std::uint64_t communicator, const std::string& payload, std::size_t stream = 0) {
    write_frame({.communicator = communicator}, payload, stream);
  }
  // The next frame that is not data.
  FrameHeader next_own(std::size_t stream = 0) {
    while (true) {
      for (const FrameHeader& header : read_frames(stream, 1)) {
        if (header.type != FrameType::kData) return header;
      }
      if (HasFailure()) return {};
    }
  }

  LinkRecorder other_sink_;
  std::shared_ptr<LinkChannel> other_;
};

}  // namespace riffle
