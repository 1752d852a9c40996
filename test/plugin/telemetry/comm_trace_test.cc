// The trace's way from the progress thread to its file: spans in order, bounded, told when dropped.
#include "plugin/telemetry/comm_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace riffle::comm_trace_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class CommTraceTest : public ::testing::Test {
 protected:
  CommTraceTest() : folder_(fs::path(::testing::TempDir()) / ("trace" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CommTraceTest() override { fs::remove_all(folder_); }

  std::string file() const { return folder_ / "r.trace"; }
  std::unique_ptr<CommTrace> open(std::uint64_t max_bytes = 1 << 20,
                                  std::size_t room = SpanLog::kSpans) const {
    return std::make_unique<CommTrace>(*Recorder::open(file(), max_bytes), 3, 0xabc, 1, 2, room);
  }
  static std::vector<json> lines_of(const std::string& path) {
    std::vector<json> all;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
    return all;
  }
  static std::vector<json> spans_of(const std::vector<json>& lines) {
    std::vector<json> spans;
    for (const json& line : lines) {
      if (line["type"] != "spans") continue;
      EXPECT_LE(line["spans"].size(), CommTrace::kSpansPerLine);
      for (json span : line["spans"]) {
        span[9] = line["at_ns"].get<std::int64_t>() + span[9].get<std::int64_t>();
        spans.push_back(span);
      }
    }
    return spans;
  }

  const fs::path folder_;
};

Span numbered(std::uint64_t n) {
  return {.kind = SpanKind::kFinalIn,
          .level = 255,
          .lane = 7,
          .group = 4'000'000'000u,
          .peer = 1,
          .term = 9,
          .number = n,
          .offset = ~0ull >> 1,
          .bytes = 4096,
          .begin_ns = (1ull << 60) - n,  // not in order of time
          .end_ns = (1ull << 60) + 10};
}

TEST_F(CommTraceTest, LinesSayWhatHappened) {
  auto trace = open();
  trace->connected(1000, {"h0", "h1"});
  for (std::uint64_t n = 0; n < 1500; ++n) trace->spans()->add(numbered(n));
  trace->event(77, "plan", "ring", "it is \"fast\"");
  trace->flush();
  const auto lines = lines_of(file());
  EXPECT_EQ(lines[0]["type"], "process");
  EXPECT_EQ(lines[1]["type"], "trace");
  EXPECT_EQ(lines[1]["comm"], "0000000000000abc");
  EXPECT_EQ(lines[1]["rank"], 1);
  EXPECT_EQ(lines[1]["size"], 2);
  EXPECT_EQ(lines[1]["every"], 3);
  EXPECT_EQ(lines[1]["room_spans"], SpanLog::kSpans);
  EXPECT_EQ(lines[1]["hosts"], json::parse(R"(["h0", "h1"])"));
  EXPECT_GT(lines[1]["time_of_day_offset_ns"].get<std::int64_t>(), 1'700'000'000'000'000'000);
  EXPECT_EQ(lines[2]["at_ns"], 77);
  EXPECT_EQ(lines[2]["why"], "it is \"fast\"");
  const auto spans = spans_of(lines);
  ASSERT_EQ(spans.size(), 1500u);
  for (std::uint64_t n = 0; n < spans.size(); ++n) {
    const Span span = numbered(n);
    EXPECT_EQ(spans[n], json({5, 9, n, 255, 4'000'000'000u, 7, 1, span.offset, 4096, span.begin_ns,
                              span.end_ns - span.begin_ns}));
  }
}

TEST_F(CommTraceTest, WhatFindsNoRoomIsCounted) {
  auto trace = open(1 << 20, 8);
  for (std::uint64_t n = 0; n < 20; ++n) trace->spans()->add(numbered(n));
  trace->flush();
  trace->spans()->drop();  // and nothing else
  trace->flush();
  const auto lines = lines_of(file());
  const auto spans = spans_of(lines);
  ASSERT_EQ(spans.size(), 8u);
  EXPECT_EQ(spans.back()[2], 7);
  EXPECT_EQ(lines.back()["dropped"], 13);
}

TEST_F(CommTraceTest, ItsLastSpansAreWrittenAfterItsEnd) {
  auto trace = open();
  trace->spans()->add(numbered(1));
  trace.reset();
  EXPECT_EQ(spans_of(lines_of(file())).size(), 1u);
}

TEST_F(CommTraceTest, EveryFileSaysWhoseItIs) {
  auto trace = open(20'000);
  trace->connected(0, {"h0", "h1"});
  for (std::uint64_t n = 0; n < 600; ++n) {
    trace->spans()->add(numbered(n));
    if (n % 100 == 99) trace->flush();
  }
  trace.reset();
  for (const std::string& path : {file(), file() + ".1"}) {
    const auto lines = lines_of(path);
    EXPECT_EQ(lines[0]["type"], "process") << path;
    EXPECT_EQ(lines[1]["type"], "trace") << path;
    EXPECT_FALSE(spans_of(lines).empty()) << path;
    EXPECT_LE(fs::file_size(path), 20'000u);
  }
}

TEST_F(CommTraceTest, NothingWaitsAndNothingIsLostBetweenThreads) {
  SpanLog log(64);
  constexpr std::uint64_t kSpans = 200'000;
  std::thread adds([&] {
    for (std::uint64_t n = 0; n < kSpans; ++n) log.add(numbered(n));
  });
  std::uint64_t taken = 0, next = 0;
  const auto take_all = [&] {
    for (Span span; log.take(&span); ++taken) {
      EXPECT_GE(span.number, next);  // in order, those dropped left out
      next = span.number + 1;
    }
  };
  while (taken + log.dropped() < kSpans) take_all();
  adds.join();
  take_all();
  EXPECT_EQ(taken + log.dropped(), kSpans);
  EXPECT_GT(taken, 0u);
}

}  // namespace
}  // namespace riffle::comm_trace_test
