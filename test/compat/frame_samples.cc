// Every type of frame.
#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/connect/probe_frame.h"
#include "plugin/collective/elastic/done_frame.h"
#include "plugin/collective/engine/wire.h"
#include "plugin/collective/sparse/sparse_frame.h"
#include "plugin/net/net_frames.h"
#include "plugin/transport/nccl_net/library_frame.h"
#include "plugin/transport/tcp/join_frames.h"
#include "test/compat/samples.h"

namespace riffle::compat {
namespace {

FrameHeader of_the_link(FrameHeader header) {
  header.communicator = 0x1122334455667788;
  return header;
}

template <class Frame>
Bytes reread(const Bytes& bytes) {
  FrameBytes array{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), array.size()), array.begin());
  const Result<FrameHeader> read = decode(array);
  EXPECT_TRUE(read) << read.status().message();
  if (!read) return {};
  FrameHeader again = *read;
  if constexpr (!std::is_same_v<Frame, FrameHeader>) {
    again.type = Frame::kType;
    again.body = frame_of<Frame>(*read).encode();
  }
  return bytes_of(encode(again));
}

template <class Frame>
Sample frame(const std::string& name, const Frame& content, std::size_t length = 0,
             const std::function<void(FrameHeader*)>& more = {}) {
  FrameHeader header = of_the_link(header_of(content, length));
  if (more) more(&header);
  return {name, bytes_of(encode(header)), reread<Frame>};
}
Sample bare(const std::string& name, FrameType type) {
  FrameHeader header = of_the_link({});
  header.type = type;
  return {name, bytes_of(encode(header)), reread<FrameHeader>};
}

Sample fault() {
  Sample fault = frame("fault", ControlFrame{1, 2, 60, kFaultKind}, 58,
                       [](FrameHeader* header) { header->type = FrameType::kFault; });
  fault.reread = [](const Bytes& bytes) {
    Bytes again = reread<FrameHeader>(bytes);
    const auto type = static_cast<std::size_t>(5);
    EXPECT_EQ(again.at(type), static_cast<std::uint8_t>(FrameType::kFault));
    return again;
  };
  return fault;
}

SparseFrame sparse() {
  return {.segment = 17,
          .offset = 4096,
          .total = 9000,
          .round = 2,
          .step = 3,
          .is_in_doubt = true,
          .least_digest = 0x01020304,
          .largest_digest = 0x05060708};
}

DataFrame data() {
  DataFrame f;
  f.chunk = 7;
  f.offset = 1000;
  f.total = 262144;
  f.level = 1;
  f.group = 2;
  f.call = 4097;
  return f;
}
DataFrame relaxed_data() {
  DataFrame f = data();
  f.is_final = true;
  f.step_class = 5;
  return f;
}

JoinFrame join() {
  JoinFrame f = {.step = JoinFrame::kWelcome, .from = 7, .to = 2};
  for (std::size_t i = 0; i < f.proof.size(); ++i) f.proof[i] = static_cast<std::uint8_t>(i + 1);
  return f;
}

}  // namespace

Samples frame_samples() {
  return {
      frame("data", data(), 3),
      frame("data_of_a_relaxed_sum_with_all_of_the_header", relaxed_data(), 4096,
            [](FrameHeader* header) {
              header->term = 0x0203;
              header->payload_crc = 0x0a0b0c0d;
              header->hints = {false, true, false};
            }),
      frame("control", ControlFrame{3, 65536, 100'000, 7}, 34'464),
      bare("heartbeat", FrameType::kHeartbeat),
      bare("goodbye", FrameType::kGoodbye),
      frame("credit", CreditFrame{0x0102030405060708, 2, 9}),
      frame("posted", net::PostedFrame{9, 262144, 77}),
      fault(),
      frame("probe", ProbeFrame{ProbeFrame::kAnswer, 4, 123'456'789, 16'000'000}),
      frame("done", DoneFrame{1234, DoneFrame::kDown}),
      frame("sparse", sparse(), 4904),
      frame("length", LengthFrame{99, 1000, LengthFrame::kAnswer}),
      frame("message", net::MessageFrame{9, 131072, 262144}, 5,
            [](FrameHeader* header) {
              header->hints = {true, false, true};
            }),
      frame("join", join()),
      frame("leave", LeaveFrame{true, false, 0x0102030405060708}),
      frame("library", nccl_net::LibraryFrame{nccl_net::LibraryFrame::kPosted, 31}),
  };
}

}  // namespace riffle::compat
