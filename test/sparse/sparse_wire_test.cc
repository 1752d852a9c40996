#include "sparse/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace riffle::sparse::sparse_wire_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Entries every(std::uint64_t elements, std::uint64_t stride, float first = 1) {
  Entries entries;
  for (std::uint64_t i = 0; i < elements; i += stride) {
    entries.append(static_cast<std::uint32_t>(i), first + static_cast<float>(i % 100));
  }
  return entries;
}

Bytes written(const MessageKind& kind, const std::vector<BlockShape>& shapes,
              const std::vector<Entries>& entries) {
  MessageWriter writer;
  writer.begin(kind, shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) writer.add(shapes[i], entries[i]);
  const auto bytes = writer.bytes();
  return {bytes.begin(), bytes.end()};
}

TEST(SparseWire, BlocksOfEverySizeAndDensitySurviveTheTrip) {
  for (const Element values : {Element::kFloat32, Element::kBfloat16}) {
    const MessageKind kind{values, 3, 77};
    const std::vector<BlockShape> shapes = {{4, 1000},   {5, 65536},  {6, 65537},   {0, 0},
                                            {1, 90},     {2, 90},     {3, 100000},  {7, 65537},
                                            {8, 131072}, {9, 131073}, {10, 1 << 20}};
    Entries last_run;
    for (std::uint32_t i = 15 << 16; i < 1 << 20; i += 31) last_run.append(i, 1);
    const std::vector<Entries> entries = {every(1000, 100),
                                          every(65536, 65535),
                                          every(65537, 65536),
                                          Entries(),
                                          every(90, 1),
                                          every(90, 91),
                                          every(100000, 1),
                                          every(65537, 64),
                                          every(131072, 99),
                                          every(131073, 32),
                                          last_run};
    const Bytes bytes = written(kind, shapes, entries);
    std::vector<Entries> read(shapes.size());
    const Status status = read_message(bytes, kind, shapes, read);
    ASSERT_TRUE(status.is_ok()) << status.message();
    std::size_t expected = kMessageHeaderBytes;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(read[i].indices(), entries[i].indices())) << i;
      EXPECT_TRUE(std::ranges::equal(read[i].values(), entries[i].values())) << i;
      expected += kBlockHeaderBytes + block_bytes(shapes[i].elements, entries[i].count(), values);
    }
    EXPECT_EQ(bytes.size(), expected);
  }
}

TEST(SparseWire, ABlockIsDenseWhereThatIsShorter) {
  EXPECT_FALSE(is_dense_shorter(900, 600, Element::kFloat32));  // 6 bytes against 4: two thirds
  EXPECT_TRUE(is_dense_shorter(900, 601, Element::kFloat32));
  EXPECT_FALSE(is_dense_shorter(900, 450, Element::kBfloat16));  // 4 against 2: half
  EXPECT_TRUE(is_dense_shorter(900, 451, Element::kBfloat16));
  // Two counts of four bytes, then as in short blocks.
  EXPECT_FALSE(is_dense_shorter(100000, 66665, Element::kFloat32));
  EXPECT_TRUE(is_dense_shorter(100000, 66666, Element::kFloat32));
  EXPECT_EQ(block_bytes(100000, 1000, Element::kFloat32), 8U + 6000U);
  EXPECT_EQ(block_bytes(100000, 5, Element::kFloat32), 8U + 30U);
  EXPECT_EQ(block_bytes(100000, 4, Element::kFloat32), 32U);  // four bytes for each are no more
  EXPECT_EQ(block_bytes(900, 9, Element::kFloat32), 54U);
  EXPECT_EQ(block_bytes(900, 700, Element::kFloat32), 3600U);
}

struct Damage {
  const char* expected;  // in the message
  std::function<void(Bytes&)> make;
};

void expect_refused(const Bytes& good, const MessageKind& kind,
                    const std::vector<BlockShape>& shapes, std::span<const Damage> damages) {
  for (const Damage& damage : damages) {
    Bytes bytes = good;
    damage.make(bytes);
    std::vector<Entries> read(shapes.size());
    const Status status = read_message(bytes, kind, shapes, read);
    EXPECT_EQ(status.code(), Code::kRemote);
    EXPECT_NE(status.message().find(damage.expected), std::string::npos)
        << status.message() << " does not say: " << damage.expected;
  }
}

TEST(SparseWire, WhatIsMalformedIsRefusedWithAReason) {
  const MessageKind kind{Element::kFloat32, 2, 9};
  const std::vector<BlockShape> shapes = {{1, 500}, {2, 40}};
  const Bytes good = written(kind, shapes, {every(500, 100), every(40, 1)});
  constexpr std::size_t kFirst = kMessageHeaderBytes;
  constexpr std::size_t kPayload = kMessageHeaderBytes + 2 * kBlockHeaderBytes;
  const Damage damages[] = {
      {"its length", [](Bytes& b) { b.clear(); }},
      {"its length", [](Bytes& b) { b.pop_back(); }},
      {"its length", [](Bytes& b) { b.push_back(0); }},
      {"magic", [](Bytes& b) { ++b[0]; }},
      {"version", [](Bytes& b) { ++b[4]; }},
      {"value type is 2", [](Bytes& b) { b[5] = 2; }},
      {"its step is 3, expected 2", [](Bytes& b) { ++b[6]; }},
      {"sequence", [](Bytes& b) { ++b[8]; }},
      {"number of blocks", [](Bytes& b) { b[15] = 0xff; }},
      {"label is 0, expected 1", [](Bytes& b) { b[kFirst] = 0; }},
      {"count is 16777221, expected up to 500", [](Bytes& b) { b[kFirst + 7] = 1; }},
      {"not in the shorter form", [](Bytes& b) { b[kFirst + 7] = 0x80; }},
      {"not in the shorter form", [](Bytes& b) { b[kFirst + 15] = 0; }},
      {"an index is 0, expected above the one before, 0", [](Bytes& b) { b[kPayload + 2] = 0; }},
      {"an index is 65424, expected below 500", [](Bytes& b) { b[kPayload + 9] = 0xff; }},
      {"the value of index 0 is zero",
       [](Bytes& b) { std::fill_n(b.begin() + kPayload + 10, 4, std::uint8_t{0}); }},
      {"values that are not zero is 39, expected 40",
       [](Bytes& b) { std::fill_n(b.end() - 4, 4, std::uint8_t{0}); }},
  };
  expect_refused(good, kind, shapes, damages);
}

TEST(SparseWire, DamagedRunsOfALongBlockAreRefused) {
  const MessageKind kind{Element::kFloat32, 2, 9};
  const std::vector<BlockShape> shapes = {{1, 100000}};
  const Bytes good = written(kind, shapes, {every(100000, 10000)});  // 7 and 3 indices
  constexpr std::size_t kRuns = kMessageHeaderBytes + kBlockHeaderBytes;
  constexpr std::size_t kHalves = kRuns + 8;
  const Damage damages[] = {
      {"a run's count is 11, expected up to 10", [](Bytes& b) { b[kRuns] = 11; }},
      {"a run's count is 4294967040, expected up to 3",
       [](Bytes& b) { std::copy_n("\0\xff\xff\xff", 4, &b[kRuns + 4]); }},
      {"the sum of its runs is 9, expected 10", [](Bytes& b) { b[kRuns + 4] = 2; }},
      {"an index is 0, expected above the one before, 0",
       [](Bytes& b) { b[kHalves + 3] = b[kHalves + 2] = 0; }},
      {"an index is 130816, expected below 100000",
       [](Bytes& b) { std::copy_n("\0\xff", 2, &b[kHalves + 18]); }},
  };
  expect_refused(good, kind, shapes, damages);
}

}  // namespace
}  // namespace riffle::sparse::sparse_wire_test
