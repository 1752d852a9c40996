// Frames and CRC32C: what encode() writes decode() reads, and nothing else passes.
#include "plugin/transport/base/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

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
  return {.type = static_cast<FrameType>(1 + random() % 7),
          .flags = static_cast<std::uint16_t>(random()),
          .communicator = random(),
          .seq = random(),
          .offset = random(),
          .total = random(),
          .key = static_cast<std::uint32_t>(random()),
          .length = static_cast<std::uint32_t>(random() % (kMaxFramePayload + 1)),
          .credit_class = static_cast<std::uint16_t>(random()),
          .credits = static_cast<std::uint16_t>(random()),
          .payload_crc = static_cast<std::uint32_t>(random()),
          .hints = {random() % 2 == 0, random() % 2 == 0}};
}

TEST(Frame, RandomHeadersComeBackAsTheyWere) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    const FrameHeader in = random_header(random);
    const auto out = decode(encode(in));
    ASSERT_TRUE(out) << out.status().message();
    EXPECT_EQ(in.type, out->type);
    EXPECT_EQ(in.flags, out->flags);
    EXPECT_EQ(in.communicator, out->communicator);
    EXPECT_EQ(in.seq, out->seq);
    EXPECT_EQ(in.offset, out->offset);
    EXPECT_EQ(in.total, out->total);
    EXPECT_EQ(in.key, out->key);
    EXPECT_EQ(in.length, out->length);
    EXPECT_EQ(in.credit_class, out->credit_class);
    EXPECT_EQ(in.credits, out->credits);
    EXPECT_EQ(in.payload_crc, out->payload_crc);
    EXPECT_EQ(in.hints, out->hints);
  }
}

TEST(Frame, TheLayoutOnTheWireStaysWhatItIs) {
  const FrameBytes b = encode({.type = FrameType::kData,
                               .flags = 0x0102,
                               .communicator = 0x1112131415161718,
                               .seq = 0x2122232425262728,
                               .offset = 0x3132333435363738,
                               .total = 0x4142434445464748,
                               .key = 0x51525354,
                               .length = 0x216263,
                               .credit_class = 0x7172,
                               .credits = 0x8182,
                               .payload_crc = 0x91929394,
                               .hints = {true, true}});
  const std::vector<std::uint8_t> expected = {
      'R',  'F',  'L',  '1',  3,    1,    0x02, 0x01, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12,
      0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33,
      0x32, 0x31, 0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x51, 0x63,
      0x62, 0x21, 0,    0x72, 0x71, 0x82, 0x81, 0x94, 0x93, 0x92, 0x91, 3,    0,    0,    0};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), b.begin()));
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
  b[47] = 0x7f;
  EXPECT_NE(message(signed_again(b)).find("at most 4194304"), std::string::npos);
  EXPECT_NE(message(FrameBytes{}).find("magic"), std::string::npos);
}

}  // namespace
}  // namespace riffle::frame_test
