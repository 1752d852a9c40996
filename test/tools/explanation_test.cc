// tools/explain: records are written by the plugin's own writer, with traffic made up here.
#include "tools/explain/explanation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plugin/telemetry/comm_record.h"
#include "plugin/version.h"
#include "tools/explain/record_lines.h"

namespace riffle::tools::explanation_test {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kSecond = 1'000'000'000;

// Ten seconds of collectives of eight nodes, one record per node.
class Job {
 public:
  Job() : folder_(fs::path(::testing::TempDir()) / ("explain" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (int n = 0; n < kNodes; ++n) hosts_.push_back("node" + std::to_string(n));
  }
  ~Job() { fs::remove_all(folder_); }

  std::string folder() const { return folder_; }
  std::string file(int rank) const { return folder_ / ("r" + std::to_string(rank) + ".jsonl"); }

  // bytes and busy seconds of the link from a to b; `late`: whom everybody's groups wait for.
  using Link = std::function<std::pair<double, double>(int a, int b)>;
  void write(const Fabric* fabric, const Link& link, int late, int nodes_with_records = kNodes,
             std::uint64_t comm = 0xfeed) {
    for (int rank = 0; rank < nodes_with_records; ++rank) {
      CommRecord record(*Recorder::open(file(rank), 1 << 20), comm, rank, kNodes);
      record.connected(hosts_);
      record.planned({.cause = "connect",
                      .reason = "because",
                      .name = "direct",
                      .fabric = rank == 0 ? fabric : nullptr});
      record.counters().began(0);
      for (int i = 0; i < 10; ++i) record.counters().last_was(i == 0 && rank != late ? rank : late);
      record.counters().ended(10 * kSecond, 0, kBytes);
      std::vector<LinkSample> links;
      for (int peer = 0; peer < kNodes; ++peer) {
        if (peer == rank) continue;
        const auto [out, busy_s] = link(rank, peer);
        const auto in = link(peer, rank).first;
        links.push_back({.peer = peer,
                         .bytes_out = static_cast<std::uint64_t>(out),
                         .bytes_in = static_cast<std::uint64_t>(in),
                         .busy_us = static_cast<std::uint64_t>(busy_s * 1e6)});
      }
      record.sample(10 * kSecond, links);
    }
  }

  Explanation explained() const {
    const auto job = read_records({folder_});
    EXPECT_TRUE(job.is_ok()) << job.status().message();
    const auto all = explain(*job);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Explanation{} : all.front();
  }

  static constexpr int kNodes = 8;
  static constexpr std::uint64_t kBytes = 120'000'000;

 private:
  fs::path folder_;
  std::vector<std::string> hosts_;
};

// 100 Mbit/s for 10 s are 125 MB. Node 3 sends and receives what the others need of it.
std::pair<double, double> straggler(int a, int b) {
  const bool slow = a == 3 || b == 3;
  return {slow ? 120e6 / 7 : 20e6, slow ? 9.6 : 0.6};
}

std::pair<double, double> between_racks(int a, int b) {
  const bool across = a % 2 != b % 2;
  return {across ? 240e6 / 16 : 20e6, across ? 9.7 : 1.0};
}

Fabric even() {
  Fabric fabric = even_fabric(Job::kNodes, 400'000);
  return fabric;
}

TEST(Explain, NamesTheSlowLinkByItsRate) {
  Job job;
  Fabric fabric = even();
  fabric.nodes[3].out_kbps = fabric.nodes[3].in_kbps = 100'000;
  job.write(&fabric, straggler, 3);
  const Explanation e = job.explained();
  EXPECT_TRUE(e.headline.starts_with("sending of node node3 limits: 100 Mbit/s, in use 100 %"))
      << e.headline;
  EXPECT_NE(e.headline.find("x the bound"), std::string::npos) << e.headline;
  EXPECT_EQ(e.recorded_nodes, 8);
  ASSERT_EQ(e.waits.size(), 7u);
  for (const Wait& w : e.waits) {
    EXPECT_EQ(w.by, 3);
    EXPECT_NEAR(w.share, 0.9, 1e-9);
  }
  ASSERT_TRUE(e.bound_s.has_value());
  EXPECT_NEAR(*e.bound_s, 9.6 * 1514 / 1448, 0.01);
}

// A job that began anew in the same folder, or process groups one after the other.
TEST(Explain, CommunicatorsInSuccessionDoNotShareTheTime) {
  Fabric fabric = even();
  fabric.nodes[3].out_kbps = fabric.nodes[3].in_kbps = 100'000;
  Job job;
  job.write(&fabric, straggler, 3);
  const Explanation once = job.explained();
  job.write(&fabric, straggler, 3, Job::kNodes, 0xbeef);
  const Explanation twice = job.explained();
  EXPECT_EQ(twice.communicators, 2);
  EXPECT_EQ(twice.headline, once.headline);
  ASSERT_FALSE(twice.resources.empty());
  EXPECT_NEAR(twice.resources[0].carried_mbps, once.resources[0].carried_mbps, 1e-6);
}

TEST(Explain, NamesTheSlowNodeWithoutAnyRate) {
  Job job;
  job.write(nullptr, straggler, 3);
  const Explanation e = job.explained();
  EXPECT_NE(e.headline.find("of node node3 limits: it carried 96 Mbit/s"), std::string::npos)
      << e.headline;
  EXPECT_FALSE(e.bound_s.has_value());
}

TEST(Explain, SaysThatALinkIsSlowerThanItsRateSays) {
  Job job;
  const Fabric fabric = even();
  job.write(&fabric, straggler, 3);
  EXPECT_NE(job.explained().headline.find("of node node3 limits: it carried 96 Mbit/s"),
            std::string::npos);
  EXPECT_NE(job.explained().headline.find("though its rate counts as 400 Mbit/s"),
            std::string::npos);
}

TEST(Explain, NamesTheUplink) {
  Job job;
  Fabric fabric = even();
  fabric.racks = {{"left", 200'000, 200'000}, {"right", 0, 0}};
  for (int n = 0; n < Job::kNodes; ++n) fabric.nodes[n].rack = n % 2;
  job.write(&fabric, between_racks, 3);
  EXPECT_TRUE(job.explained().headline.starts_with("uplink of rack left limits: 200 Mbit/s"))
      << job.explained().headline;
}

TEST(Explain, FindsThePathBetweenRacksThatNobodyDescribed) {
  Job job;
  job.write(nullptr, between_racks, 3);
  EXPECT_TRUE(job.explained().headline.starts_with(
      "the path between {node0, node2, node4, node6} and {node1, node3, node5, node7} limits"))
      << job.explained().headline;
}

TEST(Explain, SaysWhenNoLinkStandsOut) {
  Job job;
  const Fabric fabric = even();
  job.write(
      &fabric, [](int, int) { return std::pair(10e6, 1.0); }, 3);
  EXPECT_TRUE(job.explained().headline.starts_with("no link stands out"))
      << job.explained().headline;
}

TEST(Explain, OtherNodesRecordsFillInForMissingOnes) {
  Job job;
  Fabric fabric = even();
  fabric.nodes[7].out_kbps = 100'000;
  // Node 7 gave no record; what the others received from it says enough.
  job.write(
      &fabric, [](int a, int) { return std::pair(a == 7 ? 120e6 / 7 : 20e6, 1.0); }, 7, 7);
  const Explanation e = job.explained();
  EXPECT_EQ(e.recorded_nodes, 7);
  EXPECT_TRUE(e.headline.starts_with("sending of node node7 limits: 100 Mbit/s")) << e.headline;
}

// Two communicators of the same nodes in one folder: the exact one took nearly all the time.
TEST(Explain, ShowsTheModesOfEveryCommunicator) {
  Job job;
  const auto write = [&](std::uint64_t comm, const char* mode, std::uint64_t seconds) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::string name = job.folder() + "/" + mode + std::to_string(rank) + ".jsonl";
      CommRecord record(*Recorder::open(name, 1 << 20), comm, rank, 2);
      record.connected({"node0", "node1"});
      record.counters().began(0);
      record.counters().ended(seconds * kSecond, 0, Job::kBytes);
      if (rank == 0) record.mode_changed({mode, 40 + comm, "told so"});
      const RelaxedTotals relaxed{.calls = 100 * comm, .full_calls = 7};
      record.sample(seconds * kSecond, {}, &relaxed);
    }
  };
  write(1, "ds_sync", 1);
  write(2, "moshpit", 10);
  const Explanation e = job.explained();
  EXPECT_EQ(e.communicators, 2);
  ASSERT_EQ(e.modes.size(), 2u);
  const std::string text = to_text(e, Colours(stdout));
  for (const char* wanted : {"communicator 0: ds_sync from call 41 on", "600 relaxed calls",
                             "communicator 1: moshpit from call 42 on"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " in\n" << text;
  }
  const auto json = nlohmann::json::parse(to_json(std::vector{e}))["explanations"][0];
  std::map<std::string, int> found;
  for (const auto& mode : json["modes"]) found[mode["mode"]] = mode["communicator"];
  EXPECT_EQ(found, (std::map<std::string, int>{{"ds_sync", 0}, {"moshpit", 1}}));
  EXPECT_EQ(json["relaxed"]["calls"], 600);
}

// Node 1 is killed, then node 2; node 0 tells. Node 1's record ends before.
TEST(Explain, ShowsLostNodes) {
  Job job;
  for (const int rank : {0, 1, 3}) {
    CommRecord record(*Recorder::open(job.file(rank), 1 << 20), 1, rank, 4);
    record.connected({"node0", "node1", "node2", "node3"});
    record.sample(kSecond, {});
    if (rank == 1) continue;
    record.survived({{{1, "reset by peer"}}, 3, rank == 0 ? 4.5 : 7});
    record.survived({{{2, "silent for 5 s"}}, 2, rank == 0 ? 20.25 : 18});
  }
  const Explanation e = job.explained();
  ASSERT_EQ(e.losses.size(), 2u);
  const std::string text = to_text(e, Colours(stdout));
  for (const char* wanted :
       {"node1 (reset by peer); 3 of 4 nodes went on, 7 ms after it was noticed",
        "node2 (silent for 5 s); 2 of 4 nodes went on, 20 ms after"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " in\n" << text;
  }
  const auto json = nlohmann::json::parse(to_json(std::vector{e}))["explanations"][0]["losses"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["lost"][0]["rank"], 2);
  EXPECT_EQ(json[1]["left"], 2);
  EXPECT_EQ(json[1]["recovery_us"], 20250);
  EXPECT_NE(to_html({e}).find("node2 (silent for 5 s)"), std::string::npos);
}

TEST(Explain, ShowsTheSyncGap) {
  Job job;
  for (int rank = 0; rank < 2; ++rank) {
    CommRecord record(*Recorder::open(job.file(rank), 1 << 20), 1, rank, 2);
    record.connected({"node0", "node1"});
    RelaxedTotals relaxed{.calls = 100, .rounds = 25, .waits = 3};
    relaxed.corrections = 20;
    relaxed.gap_steps = rank == 0 ? 30 : 70;
    relaxed.longest_gap = rank == 0 ? 8 : 5;
    if (rank == 0) record.mode_changed({"shadow_sync", 40, "told so", "easgd (pull 0.5)"});
    record.sample(kSecond, {}, &relaxed);
  }
  const Explanation e = job.explained();
  const std::string text = to_text(e, Colours(stdout));
  for (const char* wanted : {"shadow_sync, rule easgd (pull 0.5), from call 40 on: told so",
                             "50 rounds in the background, 6 of them waited for",
                             "2.5 steps after their snapshot, at most 8"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " in\n" << text;
  }
  const auto json = nlohmann::json::parse(to_json(std::vector{e}))["explanations"][0]["relaxed"];
  EXPECT_EQ(json["rounds"], 50);
  EXPECT_EQ(json["waits"], 6);
  EXPECT_EQ(json["mean_gap"], 2.5);
  EXPECT_EQ(json["longest_gap"], 8);
}

TEST(Explain, AllOutputsHoldTheHeadline) {
  Job job;
  job.write(nullptr, straggler, 3);
  const Explanation e = job.explained();
  const std::string text = to_text(e, Colours(stdout));
  EXPECT_EQ(text.substr(0, text.find('\n')), e.headline);
  EXPECT_NE(text.find("7 nodes (node0, node1, node2, node4, ...) wait for node3"),
            std::string::npos)
      << text;
  EXPECT_EQ(nlohmann::json::parse(to_json(std::vector{e}))["explanations"][0]["headline"],
            e.headline);
  const std::string html = to_html({e});
  EXPECT_NE(html.find(e.headline), std::string::npos);
  EXPECT_EQ(html.find("http://www.w3.org/2000/svg") != std::string::npos, true);
  EXPECT_EQ(html.find("<script"), std::string::npos);
}

TEST(Explain, SaysWhichJobWhenAndByWhichVersion) {
  Job job;
  setenv("SLURM_JOB_ID", "4711", 1);
  job.write(nullptr, straggler, 3);
  unsetenv("SLURM_JOB_ID");
  Explanation e = job.explained();
  EXPECT_NE(origin_text(e).find(std::string("job 4711, riffle ") + kVersion + ", 20"),
            std::string::npos)
      << origin_text(e);
  e.connected_t = 1'764'000'000;
  e.newest_t = e.connected_t + 90;
  EXPECT_TRUE(origin_text(e).ends_with(", 2025-11-24 16:00:00 to 16:01:30 UTC")) << origin_text(e);
  for (const std::string& text : {to_text(e, Colours(stdout)), to_html({e})}) {
    EXPECT_NE(text.find(origin_text(e)), std::string::npos) << text;
    EXPECT_NE(text.find(kCallsAreSlices), std::string::npos) << text;
  }
  const auto json = nlohmann::json::parse(to_json(std::vector{e}))["explanations"][0];
  EXPECT_EQ(json["slurm_job_id"], "4711");
  EXPECT_EQ(json["version"], kVersion);
  EXPECT_EQ(json["newest_unix_us"], 1'764'000'090'000'000.0);
  e.newest_t = 1e300;  // what a file may say
  EXPECT_TRUE(origin_text(e).ends_with(" to ? UTC")) << origin_text(e);
}

TEST(Explain, DamagedRecordsAreReadAsFarAsTheyGo) {
  Job job;
  job.write(nullptr, straggler, 3);
  std::ofstream(job.file(0), std::ios::app) << "{\"type\":\"sample\",\"comm\":\"00\n"
                                            << "no json at all\n"
                                            << R"({"type":"sample","comm":"000000000000feed"})"
                                            << "\n{\"type\":\"plan\",\"comm\":\"x\"";
  const auto read = read_records({job.folder()});
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(read->notes.size(), 2u);
  EXPECT_EQ(explain(*read).front().recorded_nodes, 8);
}

TEST(Explain, SaysWhereToFindARecord) {
  Job job;
  const auto empty = read_records({job.folder()});
  ASSERT_FALSE(empty.is_ok());
  EXPECT_NE(empty.status().message().find("RIFFLE_RECORD="), std::string::npos);
  EXPECT_FALSE(read_records({"/no/such/path"}).is_ok());
}

}  // namespace
}  // namespace riffle::tools::explanation_test
