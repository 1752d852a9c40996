// tools/live: following records that grow, and what they say of the last seconds.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "plugin/telemetry/comm_record.h"
#include "test/tools/made_job.h"
#include "tools/live/exposition.h"
#include "tools/live/live_view.h"
#include "tools/live/record_follower.h"

namespace riffle::tools::live_test {
namespace {

namespace fs = std::filesystem;

std::uint64_t calls_of(const RecordFollower& record, int rank) {
  const JobRecord job = record.job();
  const auto comm = job.comms.find("000000000000feed");
  if (comm == job.comms.end()) return 0;
  const auto node = comm->second.nodes.find(rank);
  if (node == comm->second.nodes.end() || node->second.samples.empty()) return 0;
  return node->second.samples.back().sizes.at(MadeJob::kCallBytes).count;
}

TEST(RecordFollower, ReadsWhatIsAdded) {
  MadeJob job("follow-added");
  RecordFollower record({job.folder()}, {});
  ASSERT_TRUE(record.look());
  EXPECT_FALSE(record.has_lines());
  EXPECT_EQ(record.files(), 0u);
  job.connect();
  for (std::uint64_t calls = 1; calls < 5; ++calls) {
    job.step();
    ASSERT_TRUE(record.look());
    for (int rank = 0; rank < MadeJob::kNodes; ++rank) EXPECT_EQ(calls_of(record, rank), calls);
  }
  EXPECT_EQ(record.files(), 4u);
  EXPECT_EQ(record.bad_lines(), 0u);
}

TEST(RecordFollower, AHalfLineIsReadWhenItIsWhole) {
  MadeJob job("follow-half");
  job.connect();
  job.step();
  job.step();
  job.end();
  std::string text;
  {
    std::ifstream in(job.file(0), std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::size_t half = text.size() - 40;  // within the last sample
  fs::remove(job.file(0));
  std::ofstream(job.file(0), std::ios::binary) << text.substr(0, half);
  RecordFollower record({job.file(0)}, {});
  ASSERT_TRUE(record.look());
  EXPECT_EQ(calls_of(record, 0), 1u);
  ASSERT_TRUE(record.look());
  std::ofstream(job.file(0), std::ios::binary | std::ios::app) << text.substr(half);
  ASSERT_TRUE(record.look());
  EXPECT_EQ(calls_of(record, 0), 2u);
  EXPECT_EQ(record.bad_lines(), 0u);
  std::ofstream(job.file(0), std::ios::app) << "no record\n";
  ASSERT_TRUE(record.look());
  EXPECT_EQ(record.bad_lines(), 1u);
}

// Files are renamed every few samples; a loss was told before.
TEST(RecordFollower, GoesOnWhereAFileWasRenamed) {
  MadeJob job("follow-rotated", 4000);
  RecordFollower record({job.folder()}, {});
  job.connect();
  job.node(1).survived({{{3, "killed"}}, 3, 4.5});
  for (std::uint64_t calls = 1; calls <= 30; ++calls) {
    job.step();
    ASSERT_TRUE(record.look());
    for (int rank = 0; rank < MadeJob::kNodes; ++rank) ASSERT_EQ(calls_of(record, rank), calls);
  }
  EXPECT_TRUE(fs::exists(job.file(0) + ".1"));
  EXPECT_EQ(record.files(), 8u);
  EXPECT_EQ(record.bad_lines(), 0u);
  const JobRecord read = record.job();
  const CommRecords& comm = read.comms.begin()->second;
  ASSERT_EQ(comm.nodes.at(1).losses.size(), 1u);
  EXPECT_EQ(comm.nodes.at(1).losses[0].lost[0].second, "killed");
  EXPECT_EQ(plans_of(comm).size(), 1u);  // stands in front of every file
}

TEST(RecordFollower, FilesMayGo) {
  MadeJob job("follow-gone");
  job.connect();
  job.step();
  RecordFollower record({job.folder()}, {});
  ASSERT_TRUE(record.look());
  job.end();
  for (int rank = 0; rank < MadeJob::kNodes; ++rank) fs::remove(job.file(rank));
  ASSERT_TRUE(record.look());
  EXPECT_EQ(record.files(), 0u);
  EXPECT_EQ(calls_of(record, 0), 1u);
  fs::remove_all(job.folder());
  const Status gone = record.look();
  EXPECT_EQ(gone.code(), Code::kInvalidArgument);
  EXPECT_NE(gone.message().find(job.folder() + ": there is no such file or folder"),
            std::string::npos);
}

// A file that begins anew, shorter than it was.
TEST(RecordFollower, ReadsAFileThatWasCutFromItsFront) {
  MadeJob job("follow-cut");
  job.connect();
  job.step();
  job.end();
  RecordFollower record({job.file(0)}, {});
  ASSERT_TRUE(record.look());
  fs::resize_file(job.file(0), 0);
  std::ofstream(job.file(0)) << R"({"type":"failed","t":1,"comm":"bb","rank":0,"why":"no route"})"
                             << "\n";
  ASSERT_TRUE(record.look());
  ASSERT_EQ(record.job().failures.size(), 1u);
  EXPECT_EQ(record.job().failures[0].why, "no route");
}

TEST(RecordFollower, WhatIsOverIsForgotten) {
  MadeJob job("follow-over");
  job.connect();
  job.step();
  job.end();
  using namespace std::chrono_literals;
  for (int rank = 1; rank < MadeJob::kNodes; ++rank) {
    fs::last_write_time(job.file(rank), fs::file_time_type::clock::now() - 1h);
  }
  RecordFollower record({job.folder()}, {.forget_s = 600});
  ASSERT_TRUE(record.look());
  EXPECT_EQ(record.files(), 1u);
  EXPECT_EQ(calls_of(record, 0), 1u);
  EXPECT_EQ(calls_of(record, 1), 0u);
  // A line of long ago in a file of today.
  std::ofstream(job.file(0), std::ios::app)
      << R"({"type":"failed","t":1000,"comm":"bb","rank":0,"why":"no route"})"
      << "\n";
  ASSERT_TRUE(record.look());
  EXPECT_EQ(record.job().failures.size(), 0u);
  EXPECT_EQ(record.job().comms.size(), 1u);
}

// 3 MiB of samples: the plan in front of them counts, they do not, but for the last ones.
TEST(RecordFollower, OldSamplesOfLongFilesAreSkipped) {
  MadeJob job("follow-long", 64 << 20);
  job.connect();
  for (int i = 0; i < 6; ++i) job.step();
  job.end();
  std::ifstream in(job.file(0));
  std::string head, samples;
  for (std::string line; std::getline(in, line);) {
    (line.starts_with(R"({"type":"sample")") ? samples : head) += line + "\n";
  }
  std::string old;
  while (old.size() < 3 * RecordFollower::kRecentBytes) {
    old += R"({"type":"sample","t":1,"comm":"000000000000feed","rank":0})"
           "\n";
  }
  std::ofstream(job.file(0), std::ios::trunc) << head << old << samples;
  RecordFollower record({job.file(0)}, {.window_s = 3600});
  ASSERT_TRUE(record.look());
  EXPECT_EQ(calls_of(record, 0), 6u);
  const JobRecord read = record.job();
  EXPECT_EQ(plans_of(read.comms.begin()->second).back().name, "direct");
  // Those that were read are not understood; most were not.
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_EQ(read.comms.begin()->second.nodes.at(0).samples.size(), 6u);
}

// One node's samples: at time t it had sent 10 t bytes in t / 2 s of collectives.
NodeRecord sampled(const std::vector<double>& times) {
  NodeRecord node;
  node.connected_t = 100;
  for (const double t : times) {
    Sample sample;
    sample.t = 100 + t;
    sample.active_us = static_cast<std::uint64_t>(t * 500'000);
    sample.links[1].out = static_cast<std::uint64_t>(10 * t);
    sample.sizes[1024] = {
        static_cast<std::uint64_t>(t), static_cast<std::uint64_t>(t) * 1000, 0, 0, {}};
    node.samples.push_back(sample);
  }
  return node;
}

TEST(LiveView, LooksAtTheLastSeconds) {
  CommRecords comm;
  comm.hosts = {"node0", "node1", "node2"};
  comm.nodes[0] = sampled({1, 2, 3, 4, 5, 6, 7, 8});
  comm.nodes[1] = sampled({6, 7.5});  // it has not run for so long
  comm.nodes[2] = sampled({0.5, 1});  // it writes nothing any more
  const CommRecords recent = last_seconds(comm, 4);
  ASSERT_EQ(recent.nodes.at(0).samples.size(), 1u);
  EXPECT_EQ(recent.nodes.at(0).connected_t, 104);
  EXPECT_EQ(recent.nodes.at(0).samples[0].t, 108);
  EXPECT_EQ(recent.nodes.at(0).samples[0].active_us, 2'000'000u);
  EXPECT_EQ(recent.nodes.at(0).samples[0].links.at(1).out, 40u);
  EXPECT_EQ(recent.nodes.at(0).samples[0].sizes.at(1024).count, 4u);
  EXPECT_EQ(recent.nodes.at(1).samples[0].links.at(1).out, 15u);
  EXPECT_TRUE(recent.nodes.at(2).samples.empty());
  // Since connect, where there is but one.
  comm.nodes[0] = sampled({8});
  EXPECT_EQ(last_seconds(comm, 4).nodes.at(0).samples[0].links.at(1).out, 80u);
}

TEST(LiveView, NamesWhatLimitsAndWhoIsWaitedFor) {
  MadeJob job("live-view");
  job.connect();
  for (int i = 0; i < 3; ++i) job.step();
  RecordFollower record({job.folder()}, {});
  ASSERT_TRUE(record.look());
  const auto views = view_live(record.job(), 10);
  ASSERT_EQ(views.size(), 1u);
  const LiveView& view = views[0];
  EXPECT_TRUE(view.now.headline.starts_with("sending of node node2 limits: 100 Mbit/s"))
      << view.now.headline;
  ASSERT_EQ(view.nodes.size(), 4u);
  const LiveNode& slow = view.nodes[MadeJob::kSlow];
  // Three links of 3.5 MB in 0.9 s.
  EXPECT_NEAR(slow.out.mbps, 3 * 3.5 * 8 / 0.9, 0.1);
  EXPECT_EQ(slow.out.rate_mbps, 100);
  EXPECT_NEAR(slow.in.share, 3 * 3.5 * 8 / 0.9 / 100 * 1514 / 1448, 0.001);
  EXPECT_EQ(view.nodes[0].in.rate_mbps, 400);
  EXPECT_NEAR(slow.waited_for, 0.75, 1e-9);
  EXPECT_TRUE(slow.sample_t.has_value());
  ASSERT_TRUE(view.plan.has_value());
  EXPECT_EQ(view.plan->name, "direct");
  // 8 MiB in 0.9 s, where 32 MiB are predicted to take 2.7 s as payload.
  ASSERT_TRUE(view.now.x_predicted.has_value());
  EXPECT_NEAR(*view.now.x_predicted, 0.9 / (2.7 / 4 * 1514 / 1448), 0.001);
}

TEST(LiveView, PredictionsAreForLargeExactSums) {
  MadeJob job("live-model");
  job.connect();
  job.step();
  job.step();
  RecordFollower record({job.folder()}, {});
  ASSERT_TRUE(record.look());
  JobRecord read = record.job();
  CommRecords& comm = read.comms.begin()->second;
  const auto is_compared = [&] { return view_live(read, 10)[0].now.x_predicted.has_value(); };
  ASSERT_TRUE(is_compared());
  comm.nodes[0].modes.push_back({.t = 1, .mode = "ds_sync"});
  EXPECT_FALSE(is_compared());
  comm.nodes[0].modes.push_back({.t = 2, .mode = "exact"});
  ASSERT_TRUE(is_compared());
  comm.nodes[1].samples.back().bursts = 1000;  // small ones
  EXPECT_FALSE(is_compared());
}

TEST(LiveView, RatesThatWereNeitherMeasuredNorGivenAreNotKnown) {
  MadeJob job("live-nominal");
  job.connect();
  job.node(0).planned({.from_chunk = 1,
                       .cause = "node 3 left",
                       .reason = "because",
                       .name = "ring",
                       .fabric = &job.fabric(),
                       .is_nominal = true});
  job.step();
  RecordFollower record({job.folder()}, {});
  ASSERT_TRUE(record.look());
  JobRecord read = record.job();
  std::vector<PlanEvent>& plans = read.comms.begin()->second.nodes.at(0).plans;
  ASSERT_EQ(plans.size(), 2u);
  plans.erase(plans.begin());
  const LiveView view = view_live(read, 10)[0];
  EXPECT_EQ(view.nodes[0].out.rate_mbps, 0);
  EXPECT_FALSE(view.now.bound_s.has_value());
  EXPECT_FALSE(view.now.x_predicted.has_value());
}

TEST(Exposition, GroupsAndEscapes) {
  Exposition out;
  out.gauge("b", "Help of b.", {}, 0.5);
  out.counter("a_total", "Help of a.", {{"x", "q\"\\\n"}}, 12345678901234567890u);
  out.gauge("b", "Help of b.", {{"x", "1"}, {"y", "2"}}, 2);
  out.counter_s("c_total", "Help of c.", {}, 1'000'002);
  EXPECT_EQ(out.text(),
            "# HELP a_total Help of a.\n# TYPE a_total counter\n"
            "a_total{x=\"q\\\"\\\\\\n\"} 12345678901234567890\n"
            "# HELP b Help of b.\n# TYPE b gauge\nb 0.5\nb{x=\"1\",y=\"2\"} 2\n"
            "# HELP c_total Help of c.\n# TYPE c_total counter\nc_total 1.000002\n");
}

}  // namespace
}  // namespace riffle::tools::live_test
