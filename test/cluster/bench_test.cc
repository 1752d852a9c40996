// `riffle bench` end to end on a small cluster: right sums, traffic on the wire, JSON as
// documented.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lab/cluster/command.h"
#include "lab/cluster/namespaces.h"

namespace riffle::cluster::bench_test {
namespace {

class BenchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    std::string folder = (std::filesystem::temp_directory_path() / "bench-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    std::ofstream(folder_ + "/small3.toml") << "about = \"3 nodes, one slow\"\nnodes = 3\n"
                                               "rate_mbps = 200\n[[exception]]\nnodes = [1]\n"
                                               "rate_mbps = 100\n";
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  Result<std::string> bench(std::vector<std::string> arguments) {
    std::vector<std::string> argv = {RIFFLE_COMMAND, "bench", "--profile",
                                     folder_ + "/small3.toml"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_command(argv, "", 240000);
  }
  std::string folder_;
};

TEST_F(BenchTest, RivalsInTurns) {
  const std::string json = folder_ + "/rows.json";
  const auto build = std::filesystem::path(RIFFLE_COMMAND).parent_path().parent_path();
  const bool has_gloo = std::filesystem::exists(build / "bench/riffle_bench_gloo");
  const std::string first = has_gloo ? "gloo-ring" : "nccl-ring";
  const auto out = bench({"--peers", first + ",nccl-tree-1M", "--in-turns", "--rounds", "2",
                          "--sizes", "1M", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  EXPECT_NE(out->find("# time of nccl-tree-1M / time of riffle, 1048576 bytes: median of 2 rounds"),
            std::string::npos)
      << *out;
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 3u) << *out;
  for (const auto& row : rows) EXPECT_EQ(row.at("wrong"), 0) << row;
  EXPECT_TRUE(rows[0].at("plugin").is_string());
  EXPECT_TRUE(rows[1].at("plugin").is_null());
  EXPECT_EQ(rows[1].at("variant"), first);
  EXPECT_TRUE(rows[0].at("plan_changes").is_number());
  EXPECT_TRUE(rows[1].at("plan_changes").is_null());
  EXPECT_EQ(rows[2].at("ratio").at("to"), "riffle");
  EXPECT_EQ(rows[2].at("ratio").at("rounds").size(), 2u);
  const auto refused = bench({"--in-turns", "--sizes", "1M"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().message().find("--in-turns takes --peers"), std::string::npos);
}

TEST_F(BenchTest, RowsAreRightAndOnTheWire) {
  const std::string json = folder_ + "/rows.json";
  const auto out =
      bench({"--peers", "nccl-ring", "--sizes", "4K,1M", "--iters", "2", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 4u) << *out;
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("profile"), "small3");
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("off_wire"), false) << row;
    EXPECT_EQ(row.at("dtype"), "float");
    EXPECT_EQ(row.at("redop"), "sum");
    EXPECT_GT(row.at("time_us"), 0);
    EXPECT_GT(row.at("algbw_gbs"), 0);
    EXPECT_GT(row.at("busbw_gbs"), 0);
    // Two of them: the median is their mean.
    ASSERT_EQ(row.at("samples_us").size(), 2u) << row;
    const auto& samples = row.at("samples_us");
    EXPECT_NEAR(samples[0].get<double>() + samples[1].get<double>(),
                2 * row.at("time_us").get<double>(), 1e-6);
    EXPECT_EQ(row.at("plan_changes").is_null(), row.at("peer") != "riffle");
  }
  EXPECT_EQ(rows[1].at("peer"), "riffle");
  EXPECT_EQ(rows[1].at("bytes"), 1 << 20);
  // S over the slow node's payload rate, less what a token bucket lets pass ahead.
  EXPECT_NEAR(rows[1].at("bound_us").get<double>(), (1 << 20) * 8 / 100.0 * 1514 / 1448, 1);
  EXPECT_GT(rows[1].at("x_bound").get<double>(), 0.9);
}

// Rivals with right sums on uneven nodes; each row says what its peer knew, and all have the same
// congestion control.
TEST_F(BenchTest, RivalsAreRightAndRowsSayWhatTheyKnow) {
  const std::string json = folder_ + "/rows.json";
  const auto out =
      bench({"--peers", "nccl-best,nccl-ring-ordered,nccl-tree-ordered,blueconnect,gloo,openmpi",
             "--sizes", "4,300K", "--dtype", "int32", "--iters", "1", "--fabric", "file",
             "--congestion", "reno", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  std::map<std::string, int> sizes;
  for (const auto& row : rows) {
    const std::string peer = row.at("peer");
    ++sizes[peer];
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("off_wire"), false) << row;
    EXPECT_EQ(row.at("congestion"), "reno");
    const bool is_ordered = peer.ends_with("-ordered") || peer == "blueconnect";
    EXPECT_EQ(row.at("network"), peer == "riffle" ? "file" : is_ordered ? "racks" : "none") << row;
    const std::string variant = row.at("variant");
    if (peer == "nccl-best") {
      EXPECT_TRUE(variant.starts_with("nccl-ring") || variant.starts_with("nccl-tree")) << variant;
    }
  }
  // Gloo and Open MPI may not be installed.
  for (const char* peer :
       {"riffle", "nccl-best", "nccl-ring-ordered", "nccl-tree-ordered", "blueconnect"}) {
    EXPECT_EQ(sizes[peer], 2) << peer << "\n" << *out;
  }
}

// One of Gloo's algorithms dies: the others compete without it, and the row says so.
TEST_F(BenchTest, ARivalThatDiesIsNamedAndTheOthersGoOn) {
  namespace fs = std::filesystem;
  const fs::path build = fs::path(RIFFLE_COMMAND).parent_path().parent_path();
  const fs::path worker = build / "bench/riffle_bench_gloo";
  if (!fs::exists(worker)) GTEST_SKIP() << "Gloo is not installed";
  fs::create_directories(folder_ + "/tools");
  fs::create_directories(folder_ + "/bench");
  fs::copy_file(RIFFLE_COMMAND, folder_ + "/tools/riffle");
  const std::string script = folder_ + "/bench/riffle_bench_gloo";
  const auto run = [&](const std::string& dying) {
    std::ofstream(script) << "#!/bin/sh\ncase \"$6\" in " + dying + ") exit 1;; esac\nexec " +
                                 worker.string() + " \"$@\"\n";
    fs::permissions(script, fs::perms::owner_all);
    return run_command({folder_ + "/tools/riffle", "bench", "--profile", folder_ + "/small3.toml",
                        "--plugin", (build / "plugin/libnccl-net-riffle.so").string(), "--peers",
                        "gloo", "--sizes", "64K", "--iters", "2", "--json", folder_ + "/rows.json"},
                       "", 240000);
  };
  const auto out = run("hd");
  ASSERT_TRUE(out) << out.status().message();
  EXPECT_NE(out->find("# gloo-hd failed: "), std::string::npos) << *out;
  const auto rows = nlohmann::json::parse(std::ifstream(folder_ + "/rows.json"));
  ASSERT_EQ(rows.size(), 2u) << *out;
  EXPECT_EQ(rows[1].at("peer"), "gloo");
  std::map<std::string, nlohmann::json> rivals;
  for (const auto& rival : rows[1].at("rivals")) {
    rivals[rival.at("variant").get<std::string>()] = rival;
  }
  ASSERT_EQ(rivals.size(), 5u) << rows[1];
  EXPECT_EQ(rivals.count(rows[1].at("variant").get<std::string>()), 0u);
  EXPECT_FALSE(rivals.at("gloo-hd").contains("time_us"));
  EXPECT_NE(rivals.at("gloo-hd").at("failed"), "");
  EXPECT_EQ(
      std::ranges::count_if(rivals, [](const auto& r) { return r.second.contains("samples_us"); }),
      3);                                                       // the fastest is the row itself
  EXPECT_NE(rivals.at("gloo-bcube-classic").at("failed"), "");  // which takes even numbers
  EXPECT_FALSE(run("*"));                                       // no row of gloo at all
}

TEST_F(BenchTest, ItsRecordExplainsWhatLimits) {
  const std::string record = folder_ + "/record";
  const auto out = bench({"--fabric", "file", "--sizes", "2M", "--iters", "3", "--record", record});
  ASSERT_TRUE(out) << out.status().message();
  const auto text = run_command({RIFFLE_COMMAND, "explain", record});
  ASSERT_TRUE(text) << text.status().message();
  const std::string first = text->substr(0, text->find('\n'));
  EXPECT_NE(first.find("of node node1 limits: 100 Mbit/s"), std::string::npos) << *text;
  EXPECT_NE(text->find("records of 3 nodes"), std::string::npos) << *text;
  EXPECT_NE(text->find("wait for node1"), std::string::npos) << *text;
}

TEST_F(BenchTest, HalfAndMaximum) {
  const std::string json = folder_ + "/rows.json";
  const auto out = bench(
      {"--sizes", "256K", "--dtype", "half", "--redop", "max", "--iters", "1", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("wrong"), 0);
}

// The whole way: a neighbour on one node's link, rates from live traffic, another plan, right sums.
TEST_F(BenchTest, ThePlanFollowsANeighbour) {
  std::ofstream(folder_ + "/busy4.toml") << "about = \"4 nodes, a neighbour\"\nnodes = 4\n"
                                            "rate_mbps = 200\n[neighbour]\nnode = 2\n"
                                            "guaranteed_mbps = 150\n";
  const std::string json = folder_ + "/series.json";
  const auto out = run_command({RIFFLE_COMMAND, "bench", "--profile", folder_ + "/busy4.toml",
                                "--sizes", "4M", "--phases", "2,14,2", "--json", json},
                               "", 240000);
  ASSERT_TRUE(out) << out.status().message();
  const auto all = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(all.size(), 1u) << *out;
  EXPECT_EQ(all[0].at("peer"), "riffle");
  const auto& series = all[0].at("series");
  ASSERT_EQ(series.size(), 18u);
  std::string changes;
  for (std::size_t i = 0; i < series.size(); ++i) {
    EXPECT_EQ(series[i].at("wrong"), 0);
    EXPECT_EQ(series[i].at("neighbour"), i >= 2 && i < 16);
    EXPECT_GT(series[i].at("time_us"), 0);
    for (const auto& change : series[i].at("changes")) changes += change.get<std::string>() + "\n";
  }
  EXPECT_NE(changes.find("node 2"), std::string::npos) << *out;
}

// ds_sync with real processes on two racks: it begins, the nodes' results add up to the right sum
// in every step, and less crosses the uplinks, so that steps take less time.
TEST_F(BenchTest, RelaxedStepsKeepTheSumsAndSendLess) {
  const std::string json = folder_ + "/rows.json", record = folder_ + "/record";
  const auto out = run_command(
      {RIFFLE_COMMAND, "bench", "--profile", "racks8", "--sizes", "8M", "--iters", "6", "--fabric",
       "file", "--sync", "ds_sync", "--peers", "riffle-exact", "--json", json, "--record", record},
      "", 240000);
  ASSERT_TRUE(out) << out.status().message();
  EXPECT_NE(out->find("# ds_sync from call "), std::string::npos) << *out;
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 2u) << *out;
  EXPECT_EQ(rows[0].at("peer"), "riffle");
  EXPECT_EQ(rows[1].at("peer"), "riffle-exact");
  for (const auto& row : rows) EXPECT_EQ(row.at("wrong"), 0) << row;
  // Not the time, which a busy machine sets: what a node sends.
  EXPECT_LT(rows[0].at("sent_per_byte").get<double>(),
            0.8 * rows[1].at("sent_per_byte").get<double>())
      << *out;
  std::string lines;
  for (const auto& file : std::filesystem::directory_iterator(record)) {
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) lines += line;
  }
  EXPECT_NE(lines.find(R"("mode":"ds_sync")"), std::string::npos);
}

// All sparse schemes with real processes, whole and in chunks: equal bits, nothing lost, as many
// messages as the formulas say, and their bytes on the wire. Six nodes, like three, three times.
TEST_F(BenchTest, SparseSchemesAreRightAndOnTheWire) {
  const std::string json = folder_ + "/rows.json";
  const std::string schemes =
      "spardl,spardl-teams,topka,topkdsa,gtopk,oktopk,ring,ring-bf16,spardl/16K,oktopk/64K";
  const auto out = bench({"--nodes", "6", "--sizes", "256K", "--iters", "3", "--sparse-peers",
                          schemes, "--density", "0.02", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 11u) << *out;
  EXPECT_EQ(rows[0].at("peer"), "riffle");
  std::string names;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const std::string scheme = row.at("scheme");
    names += (i > 1 ? "," : "") + scheme;
    EXPECT_EQ(row.at("profile"), "small3-6");
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("k"), 1311);
    EXPECT_GT(row.at("time_us"), 0);
    EXPECT_GT(row.at("wire_us"), 0);
    if (!scheme.starts_with("oktopk")) {  // which may even out what it gathers
      EXPECT_EQ(row.at("messages"), row.at("messages_formula")) << row;
      EXPECT_LE(row.at("entries").get<double>(), 1.3 * row.at("entries_formula")[1].get<double>());
    }
    if (!scheme.starts_with("ring")) {
      EXPECT_NEAR(row.at("result_entries").get<double>(), 1311, 0.35 * 1311) << row;
    }
    EXPECT_GE(row.at("tx_bytes"), row.at("message_bytes")) << row;
  }
  EXPECT_EQ(names, schemes);
}

// As many elements come out as the density says; equal bits alone a sum of nothing has, too.
TEST_F(BenchTest, ASparseSumHasItsDensity) {
  const std::string json = folder_ + "/rows.json";
  const auto out = bench({"--sizes", "1M", "--iters", "3", "--sparse", "0.02", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 1u) << *out;
  EXPECT_NEAR(rows[0].at("not_zero").get<double>(), 0.02, 0.01) << *out;
}

TEST_F(BenchTest, AModeThatDoesNotBeginIsNoRowOfThatMode) {
  std::ofstream(folder_ + "/busy3.toml") << "about = \"3 nodes, a neighbour\"\nnodes = 3\n"
                                            "rate_mbps = 200\n[neighbour]\nnode = 2\n"
                                            "guaranteed_mbps = 150\n";
  const auto out = run_command({RIFFLE_COMMAND, "bench", "--profile", folder_ + "/busy3.toml",
                                "--sizes", "1M", "--sync", "ds_sync", "--phases", "1,1,1"},
                               "", 240000);
  EXPECT_FALSE(out) << *out;
}

TEST_F(BenchTest, WrongUsageNamesWhatIsAccepted) {
  for (const auto& [option, value, named] :
       {std::tuple{"--dtype", "float12", "bfloat16"}, std::tuple{"--sizes", "3", "whole elements"},
        std::tuple{"--redop", "avg", "sum, prod, max, min"},
        std::tuple{"--sync", "gossip", "moshpit"}, std::tuple{"--peers", "pigeons", "openmpi"},
        std::tuple{"--congestion", "pigeons", "this kernel has"},
        std::tuple{"--sparse-peers", "topkb", "topkdsa"},
        std::tuple{"--sparse-peers", "topka/3", "1K to 1024M"}, std::tuple{"--nodes", "1", "2"}}) {
    const auto out = bench({option, value});
    ASSERT_FALSE(out) << option;
    EXPECT_NE(out.status().message().find(named), std::string::npos) << out.status().message();
  }
}

}  // namespace
}  // namespace riffle::cluster::bench_test
