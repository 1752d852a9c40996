// Racks found in rounds that were recorded on real queues (test/topology/rounds): TCP shares them
// unevenly, and on short ones even flows that share nothing stray.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "test/topology/price_of.h"

namespace riffle::recorded_rounds_test {
namespace {

struct Recorded {
  std::string network;
  std::vector<int> rack_of;
  std::vector<probe::Observed> rounds;
};

std::vector<Recorded> recorded(const std::string& name, std::size_t networks = 12) {
  std::ifstream file(std::string(RIFFLE_ROUNDS) + "/" + name + ".txt");
  std::vector<Recorded> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    if (line.starts_with("#")) continue;
    std::string word;
    if (line.starts_with("network ")) {
      all.emplace_back().network = line.substr(8);
    } else if (line.starts_with("racks ")) {
      in >> word;
      for (int rack = 0; in >> rack;) all.back().rack_of.push_back(rack);
    } else if (line == "round") {
      all.back().rounds.emplace_back();
    } else {
      probe::Flow flow;
      probe::Sample sample;
      in >> flow.from >> flow.to >> sample.kbps >> sample.is_steady >> sample.rtt_us;
      EXPECT_TRUE(in) << line;
      if (!(in >> sample.together_kbps)) sample.together_kbps = sample.kbps;
      all.back().rounds.back().round.flows.push_back(flow);
      all.back().rounds.back().samples.push_back(sample);
    }
  }
  EXPECT_EQ(all.size(), networks) << name;
  return all;
}

std::vector<int> found(const Recorded& r, const std::vector<probe::RackHint>& hints = {}) {
  const int nodes = static_cast<int>(r.rack_of.size());
  const probe::RackModel model(nodes, probe::estimate_node_rates(nodes, r.rounds), r.rounds);
  return probe::find_racks(model, r.rounds, hints).rack_of;
}

TEST(RecordedRounds, QueuesThatHoldAsMuchAsSwitchesDo) {
  for (const char* name : {"queues-of-60-ms", "queues-of-100-kB"}) {
    for (const Recorded& r : recorded(name)) EXPECT_EQ(found(r), r.rack_of) << r.network;
  }
}

// Queues shorter than what one host sends at once: no flow is steady. Racks that do not exist would
// be worse than racks that are not found, so there must be none of those.
TEST(RecordedRounds, QueuesThatLoseMost) {
  int right = 0;
  for (const Recorded& r : recorded("queues-of-15-ms")) {
    const bool has_racks = r.rack_of.end() != std::find(r.rack_of.begin(), r.rack_of.end(), 1);
    const bool is_right = found(r) == r.rack_of;
    EXPECT_TRUE(is_right || has_racks) << r.network;
    right += is_right;
  }
  EXPECT_GE(right, 11);
}

// In some rounds an uplink of 150 carried up to 211 Mbit/s, and a plan that believes those takes
// 1.3 times as long.
TEST(RecordedRounds, WhatATokenBucketLendsIsNoRate) {
  for (const Recorded& r : recorded("deep-token-buckets", 2)) {
    Fabric truth = even_fabric(12, 300'000);
    truth.racks = {
        {"a", 150'000, 150'000}, {"b", 300'000, 300'000}, {"c"}, {"d", 150'000, 150'000}};
    for (int n = 0; n < truth.size(); ++n) truth.nodes[n].rack = r.rack_of[n];
    probe::Survey survey(truth.size(), 1);
    for (const probe::Observed& o : r.rounds) survey.add(o);
    EXPECT_EQ(survey.findings().racks.rack_of, r.rack_of);
    EXPECT_LE(price_of(truth, survey.findings()), 1.05);
  }
}

// What flows of others leave of a slow node explains the rounds as well as a rack of its own,
// beside which all others would be a rack behind an uplink, too.
TEST(RecordedRounds, ASlowNodeIsNoRack) {
  for (const Recorded& r : recorded("slow-nodes", 3)) {
    probe::Survey survey(static_cast<int>(r.rack_of.size()), 1);
    for (const probe::Observed& o : r.rounds) survey.add(o);
    EXPECT_EQ(survey.findings().racks.rack_of, r.rack_of) << r.network;
    if (r.rack_of.size() != 12) continue;
    EXPECT_LE(survey.findings().rates.out[11].kbps, 90'000) << "others take 18 of its 100 Mbit/s";
  }
}

// The first node and the first one of another rack change places.
std::vector<int> swapped(std::vector<int> rack_of) {
  const auto other = std::find(rack_of.begin(), rack_of.end(), rack_of.front() + 1);
  if (other != rack_of.end()) std::iter_swap(rack_of.begin(), other);
  return rack_of;
}

std::vector<int> halves(std::size_t nodes) {
  std::vector<int> rack_of(nodes, 0);
  std::fill(rack_of.begin() + static_cast<std::ptrdiff_t>(nodes / 2), rack_of.end(), 1);
  return rack_of;
}

TEST(RecordedRounds, OverruleHintsThatAreWrong) {
  for (const char* name : {"queues-of-60-ms", "queues-of-100-kB"}) {
    for (const Recorded& r : recorded(name)) {
      for (const auto& wrong : {swapped(r.rack_of), halves(r.rack_of.size())}) {
        EXPECT_EQ(found(r, {{"labels", probe::kLabelNats, wrong}}), r.rack_of) << r.network;
      }
    }
  }
}

TEST(RecordedRounds, WithTheRightHintEvenThoseOfQueuesThatLoseMost) {
  for (const Recorded& r : recorded("queues-of-15-ms")) {
    EXPECT_EQ(found(r, {{"labels", probe::kLabelNats, r.rack_of}}), r.rack_of) << r.network;
  }
}

}  // namespace
}  // namespace riffle::recorded_rounds_test
