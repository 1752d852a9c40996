// Traces read back: what the plugin's own writer writes, and everything that is wrong with a file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "plugin/telemetry/comm_trace.h"
#include "tools/trace/trace_lines.h"

namespace riffle::tools::trace::lines_test {
namespace {

namespace fs = std::filesystem;

constexpr char kProcess[] = R"({"type":"process","host":"h0","pid":7})";
constexpr char kTrace[] =
    R"({"type":"trace","comm":"a","rank":0,"size":2,"every":1,"room_spans":9,"time_of_day_offset_ns":5,"hosts":["h0","h1"]})";

std::string spans_line(const std::string& span, const std::string& more = "") {
  return R"({"type":"spans","comm":"a","rank":0,"at_ns":100,"dropped":0)" + more + R"(,"spans":[)" +
         span + "]}";
}

class TraceLinesTest : public ::testing::Test {
 protected:
  TraceLinesTest()
      : folder_(fs::path(::testing::TempDir()) / ("lines" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~TraceLinesTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::app) << text;
  }
  std::string error(const std::string& comm = "") const {
    const auto job = read_traces({folder_}, comm);
    return job ? "" : job.status().message();
  }

  const fs::path folder_;
};

TEST_F(TraceLinesTest, WhatWasWrittenIsReadBack) {
  for (int rank = 0; rank < 2; ++rank) {
    const std::string file = folder_ / ("r" + std::to_string(rank) + ".jsonl.trace");
    CommTrace trace(*Recorder::open(file, 1 << 20), 5, 0xbeef, rank, 3, 700);
    trace.connected(1000, {"h0", "h1", "h2"});
    trace.event(2000, "loss", "2 nodes left", "node 2 is gone");
    for (std::uint64_t n = 0; n < 701; ++n) {
      trace.spans()->add({.kind = SpanKind::kSum,
                          .level = 2,
                          .lane = 3,
                          .group = 4,
                          .peer = 1 - rank,
                          .term = 6,
                          .number = n,
                          .offset = 8,
                          .bytes = 9,
                          .begin_ns = 5000 - n,
                          .end_ns = 6000});
    }
  }
  const auto job = read_traces({folder_}, "");
  ASSERT_TRUE(job) << job.status().message();
  EXPECT_EQ(job->comm, "000000000000beef");
  EXPECT_EQ(job->every, 5u);
  EXPECT_EQ(job->room_spans, 700u);
  ASSERT_EQ(job->size(), 3);
  EXPECT_EQ(job->notes, std::vector<std::string>{"there is no trace of node 2"});
  EXPECT_FALSE(job->nodes[2].is_there);
  for (int rank = 0; rank < 2; ++rank) {
    const NodeTrace& node = job->nodes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(node.host, "h" + std::to_string(rank));
    EXPECT_EQ(node.dropped, 1u);
    ASSERT_EQ(node.events.size(), 1u);
    EXPECT_EQ(node.events[0].why, "node 2 is gone");
    ASSERT_EQ(node.spans.size(), 700u);
    const Span& span = node.spans[600];
    EXPECT_EQ(span.kind, SpanKind::kSum);
    EXPECT_EQ(span.level, 2);
    EXPECT_EQ(span.lane, 3);
    EXPECT_EQ(span.group, 4u);
    EXPECT_EQ(span.peer, 1 - rank);
    EXPECT_EQ(span.term, 6u);
    EXPECT_EQ(span.number, 600u);
    EXPECT_EQ(span.offset, 8u);
    EXPECT_EQ(span.bytes, 9u);
    EXPECT_EQ(span.begin_ns, 4400u);
    EXPECT_EQ(span.end_ns, 6000u);
  }
}

TEST_F(TraceLinesTest, OnlyALastLineMayBeCutOff) {
  const std::string whole = std::string(kProcess) + "\n" + kTrace + "\n";
  write("a.trace", whole + R"({"type":"spans","comm":"a","ra)");
  const auto job = read_traces({folder_}, "");
  ASSERT_TRUE(job) << job.status().message();
  EXPECT_EQ(job->notes.back(),
            (folder_ / "a.trace").string() + ": the last line is cut off, and left out");
  write("a.trace", "\n" + whole);
  EXPECT_NE(error().find("a.trace, line 3: it is no JSON object"), std::string::npos) << error();
}

TEST_F(TraceLinesTest, WhatIsNotThereIsSaid) {
  EXPECT_NE(error().find("no trace of Riffle; run the job with RIFFLE_TRACE=1"), std::string::npos);
  const auto none = read_traces({folder_ / "none"}, "");
  ASSERT_FALSE(none);
  EXPECT_NE(none.status().message().find("none: there is no such file or folder"),
            std::string::npos);
  write("a.trace", std::string(kProcess) + "\n" + spans_line("") + "\n");
  EXPECT_NE(error().find("no communicator connected"), std::string::npos) << error();
  write("a.trace", std::string(kTrace) + "\n");
  EXPECT_EQ(error(), "");
  EXPECT_NE(error("b").find("there is no communicator b; there are: a"), std::string::npos);
}

struct BadLine {
  std::string line, said;
};

TEST_F(TraceLinesTest, ALineThatDoesNotFitIsNamed) {
  const BadLine bad[] = {
      {"[]", "it is no JSON object"},
      {"{}", "type is missing"},
      {R"({"type":"sample","comm":"a","rank":0})", "its type is sample"},
      {R"({"type":"trace","comm":7,"rank":0})", "comm is not text"},
      {R"({"type":"trace","comm":"a","rank":-1})", "rank is -1, accepted are 0 to"},
      {R"({"type":"trace","comm":"a","rank":1e300})", "rank is 1e+300"},
      {R"({"type":"trace","comm":"a","rank":0,"size":1,"hosts":[]})", "size is 1"},
      {R"({"type":"trace","comm":"a","rank":0,"size":2,"hosts":["a","b","c"]})",
       "hosts are no list"},
      {R"({"type":"spans","comm":"a","rank":0,"at_ns":18446744073709551615,"dropped":0,"spans":[]})",
       "at_ns is 18446744073709551615"},
      {R"({"type":"spans","comm":"a","rank":0,"at_ns":0,"dropped":0,"spans":7})",
       "spans are no list"},
      {spans_line("[1,2,3]"), "a span is not a list of 11 numbers"},
      {spans_line("[7,0,0,0,0,0,0,0,0,0,0]"), "a span's kind is 7, accepted are 0 to 6"},
      {spans_line("[0,0,0,256,0,0,0,0,0,0,0]"), "its level is 256"},
      {spans_line("[0,0,0,0,0,0,-2,0,0,0,0]"), "its peer is -2"},
      {spans_line("[0,0,0,0,0,0,0,0,0,-101,0]"), "its begin is -101, accepted are -100 to"},
      {spans_line("[0,0,0,0,0,0,0,0,0,0,-1]"), "its duration is -1"},
      {spans_line("[0,0,0,0,0,0,0,0,0,0,1e300]"), "its duration is 1e+300"},
      {spans_line("[0,0,0,0,0,0,0,0,0,0,[[[]]]]"), "its duration is array"},
      {R"({"type":"event","comm":"a","rank":0,"at_ns":1,"kind":"plan","name":"x"})",
       "why is missing"},
  };
  for (const BadLine& b : bad) {
    TraceLines lines;
    ASSERT_TRUE(lines.add("f", kProcess));
    const Status added = lines.add("f", b.line);
    ASSERT_FALSE(added) << b.line;
    EXPECT_NE(added.message().find(b.said), std::string::npos) << added.message();
  }
  write("a.trace", std::string(kProcess) + "\n" + kTrace + "\n" +
                       spans_line("[0,0,0,0,0,0,2,0,0,0,0]") + "\n");
  EXPECT_NE(error().find("node 0 of 2 has a span with node 2"), std::string::npos) << error();
}

std::string process(int pid) {
  return R"({"type":"process","host":"h","pid":)" + std::to_string(pid) + "}\n";
}
std::string trace(const std::string& comm, int rank, int size = 2) {
  return R"({"type":"trace","comm":")" + comm + R"(","rank":)" + std::to_string(rank) +
         R"(,"size":)" + std::to_string(size) +
         R"(,"every":1,"room_spans":9,"time_of_day_offset_ns":5,"hosts":[]})" + "\n";
}

TEST_F(TraceLinesTest, SeveralCommunicatorsOfAJobAreNoError) {
  write("0.trace", process(1) + trace("a", 0) + trace("b", 0));
  write("1.trace", process(2) + trace("a", 1));
  write("2.trace", process(3) + trace("b", 1) +
                       R"({"type":"spans","comm":"b","rank":1,"at_ns":0,)" +
                       R"("dropped":0,"spans":[[0,0,0,0,0,0,0,0,0,0,0]]})" + "\n");
  const auto job = read_traces({folder_}, "");
  ASSERT_TRUE(job) << job.status().message();
  EXPECT_EQ(job->comm, "b");
  EXPECT_EQ(job->notes.back(), "communicator b has most spans; there are 1 others (--comm)");
  EXPECT_EQ(read_traces({folder_}, "a")->comm, "a");
}

TEST_F(TraceLinesTest, JobsThatAreMixedAreAnError) {
  write("0.trace", process(1) + trace("a", 0));
  write("1.trace", process(2) + trace("b", 0));
  EXPECT_NE(error().find("traces of several jobs are mixed: no process of communicator a is in b"),
            std::string::npos)
      << error();
  EXPECT_EQ(read_traces({folder_}, "b")->comm, "b");
  write("2.trace", process(3) + trace("a", 0));
  EXPECT_NE(error().find("2.trace, line 2: rank 0 of communicator a is that of process h 3"),
            std::string::npos)
      << error();
}

TEST_F(TraceLinesTest, OneCommunicatorHasOneSize) {
  write("0.trace", process(1) + trace("a", 0));
  write("1.trace", process(2) + trace("a", 1, 3));
  EXPECT_NE(error().find("communicator a has 3 nodes here and 2 elsewhere"), std::string::npos);
}

TEST_F(TraceLinesTest, TheFormerFileIsReadToo) {
  write("0.trace.1", process(1) + trace("a", 0) + spans_line("[0,0,1,0,0,0,0,0,0,0,0]") + "\n");
  write("0.trace", process(1) + trace("a", 0) + spans_line("[0,0,2,0,0,0,0,0,0,0,0]") + "\n");
  const auto job = read_traces({folder_ / "0.trace"}, "");
  ASSERT_TRUE(job) << job.status().message();
  EXPECT_EQ(job->nodes[0].spans.size(), 2u);
}

}  // namespace
}  // namespace riffle::tools::trace::lines_test
