// Frames and CRC32C: what encode() writes decode() reads, and nothing else passes.
#include "plugin/transport/base/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/connect/probe_frame.h"
#include "plugin/collective/elastic/done_frame.h"
#include "plugin/collective/engine/wire.h"
#include "plugin/collective/sparse/sparse_frame.h"
#include "plugin/net/net_frames.h"
#include "plugin/transport/nccl_net/library_frame.h"
#include "plugin/transport/tcp/join_frames.h"

namespace riffle::detail {
std::uint32_t crc32c_portable(const void* data, std::size_t size, std::uint32_t seed);
}

namespace riffle::frame_test {
namespace {

TEST(Crc32c, KnownAnswers) {  // RFC 3720, B.4, and the usual check value
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(std::vector<char>(32, 0).data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<char>(32, '\xff').data(), 32), 0x62a8ab43u);
  std::vector<std::uint8_t> up(32);
  for (std::size_t i = 0; i < 32; ++i) up[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(crc32c(up.data(), 32), 0x46dd794eu);
}

TEST(Crc32c, BothImplementationsAgreeAtEveryLengthAndAlignment) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> data(300);
  for (auto& b : data) b = static_cast<std::uint8_t>(random());
  for (std::size_t at = 0; at < 9; ++at) {
    for (std::size_t size = 0; size + at <= data.size(); ++size) {
      const std::uint32_t seed = random();
      ASSERT_EQ(crc32c(&data[at], size, seed), detail::crc32c_portable(&data[at], size, seed));
    }
  }
}

TEST(Crc32c, GoesOnFromASeed) {
  EXPECT_EQ(crc32c("6789", 4, crc32c("12345", 5)), crc32c("123456789", 9));
}

FrameHeader random_header(std::mt19937_64& random) {
  FrameHeader header = {
      .type = static_cast<FrameType>(1 + random() % static_cast<unsigned>(kLastFrameType)),
      .term = static_cast<std::uint16_t>(random()),
      .communicator = random(),
      .length = static_cast<std::uint32_t>(random() % (kMaxFramePayload + 1)),
      .payload_crc = static_cast<std::uint32_t>(random()),
      .hints = {random() % 2 == 0, random() % 2 == 0, random() % 2 == 0}};
  for (auto& b : header.body) b = static_cast<std::uint8_t>(random());
  return header;
}

TEST(Frame, RandomHeadersComeBackAsTheyWere) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    const FrameHeader in = random_header(random);
    const auto out = decode(encode(in));
    ASSERT_TRUE(out) << out.status().message();
    EXPECT_EQ(in.type, out->type);
    EXPECT_EQ(in.term, out->term);
    EXPECT_EQ(in.communicator, out->communicator);
    EXPECT_EQ(in.length, out->length);
    EXPECT_EQ(in.payload_crc, out->payload_crc);
    EXPECT_EQ(in.hints, out->hints);
    EXPECT_EQ(in.body, out->body);
  }
}

TEST(Frame, TheLayoutOnTheWireStaysWhatItIs) {
  FrameHeader header = {.type = FrameType::kData,
                        .term = 0x0102,
                        .communicator = 0x1112131415161718,
                        .length = 0x216263,
                        .payload_crc = 0x91929394,
                        .hints = {true, true, true}};
  std::iota(header.body.begin(), header.body.end(), std::uint8_t{0x40});
  const FrameBytes b = encode(header);
  const std::vector<std::uint8_t> expected = {
      'R',  'F',  'L',  '1',  kFrameVersion, 1,    0x02, 0x01, 0x18, 0x17, 0x16, 0x15,
      0x14, 0x13, 0x12, 0x11, 0x63,          0x62, 0x21, 0,    0x94, 0x93, 0x92, 0x91,
      7,    0,    0,    0,    0x40,          0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47,
      0x48, 0x49, 0x4a, 0x4b, 0x4c,          0x4d, 0x4e, 0x4f, 0x50, 0x51, 0x52, 0x53,
      0x54, 0x55, 0x56, 0x57, 0x58,          0x59, 0x5a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), b.begin()));
}

// What a body says comes back, whatever the bytes; bytes that a struct leaves are zero.
template <class Frame>
class Body : public ::testing::Test {};
using Bodies = ::testing::Types<DataFrame, CreditFrame, LengthFrame, ControlFrame, ProbeFrame,
                                DoneFrame, SparseFrame, net::PostedFrame, net::MessageFrame,
                                nccl_net::LibraryFrame, JoinFrame, LeaveFrame>;
TYPED_TEST_SUITE(Body, Bodies);

TYPED_TEST(Body, ComesBackAsItWas) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000; ++i) {
    FrameBody any;
    for (auto& b : any) b = static_cast<std::uint8_t>(random());
    const FrameBody once = TypeParam::decode(any).encode();
    EXPECT_EQ(TypeParam::decode(once).encode(), once);
    EXPECT_NE(once, TypeParam().encode());
  }
}

TEST(Frame, EveryTypeHasItsOwnBody) {
  const std::set<FrameType> types = {DataFrame::kType,         CreditFrame::kType,
                                     LengthFrame::kType,       ControlFrame::kType,
                                     ProbeFrame::kType,        DoneFrame::kType,
                                     SparseFrame::kType,       net::PostedFrame::kType,
                                     net::MessageFrame::kType, nccl_net::LibraryFrame::kType,
                                     JoinFrame::kType,         LeaveFrame::kType};
  // Heartbeats and goodbyes say nothing more; a fault is a control message, or a sentence.
  EXPECT_EQ(types.size() + 3, static_cast<std::size_t>(kLastFrameType));
}

TEST(Frame, ADataFrameSaysEachThingByItself) {
  DataFrame in;
  in.chunk = 1ull << 60 | 3;
  in.offset = 1ull << 33 | 5;
  in.total = 1ull << 34 | 7;
  in.level = 255;
  in.group = (1 << 23) - 1;
  in.is_final = true;
  in.step_class = 0xabcd;
  in.call = 0x4321;
  const auto out = DataFrame::decode(in.encode());
  EXPECT_EQ(out.chunk, in.chunk);
  EXPECT_EQ(out.offset, in.offset);
  EXPECT_EQ(out.total, in.total);
  EXPECT_EQ(out.level, in.level);
  EXPECT_EQ(out.group, in.group);
  EXPECT_TRUE(out.is_final);
  EXPECT_EQ(out.step_class, in.step_class);
  EXPECT_EQ(out.call, in.call);
  in.is_final = false;
  EXPECT_FALSE(DataFrame::decode(in.encode()).is_final);
}

TEST(Frame, EveryFlippedBitIsNoticed) {
  std::mt19937_64 random(3);
  const FrameBytes good = encode(random_header(random));
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    FrameBytes bad = good;
    bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1u << bit % 8);
    EXPECT_FALSE(decode(bad)) << bit;
  }
}

// A header that is intact but claims nonsense: from a peer with a bug, or an attacker.
FrameBytes signed_again(FrameBytes bytes) {
  const std::uint32_t crc = crc32c(bytes.data(), 60);
  for (std::size_t i = 0; i < 4; ++i) bytes[60 + i] = static_cast<std::uint8_t>(crc >> 8 * i);
  return bytes;
}

TEST(Frame, ErrorsSayWhatIsWrong) {
  const auto message = [](const FrameBytes& b) { return decode(b).status().message(); };
  FrameBytes b = encode(FrameHeader{});
  b[4] = 9;
  EXPECT_NE(message(signed_again(b)).find("frame version 9"), std::string::npos);
  b = encode(FrameHeader{});
  b[5] = 77;
  EXPECT_NE(message(signed_again(b)).find("frame type 77"), std::string::npos);
  b = encode(FrameHeader{});
  b[5] = 0;
  EXPECT_NE(message(signed_again(b)).find("frame type 0"), std::string::npos);
  b = encode(FrameHeader{});
  b[19] = 0x7f;
  EXPECT_NE(message(signed_again(b)).find("at most 4194304"), std::string::npos);
  EXPECT_NE(message(FrameBytes{}).find("magic"), std::string::npos);
}

}  // namespace
}  // namespace riffle::frame_test
