// A job that never ran: its record is written by the plugin's own writer, with traffic made up
// here.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plugin/telemetry/comm_record.h"
#include "topology/fabric/fabric.h"

namespace riffle::tools {

// Four nodes, of which node2 has a quarter of the others' rate. Each call of step() is one
// second more in which all exchange as much as that allows.
class MadeJob {
 public:
  static constexpr int kNodes = 4, kSlow = 2;
  static constexpr std::uint64_t kComm = 0xfeed;

  explicit MadeJob(const std::string& name, std::uint64_t file_bytes = 1 << 20)
      : folder_(std::filesystem::path(::testing::TempDir()) / (name + std::to_string(getpid()))),
        file_bytes_(file_bytes) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    fabric_ = even_fabric(kNodes, 400'000);
    fabric_.nodes[kSlow].out_kbps = fabric_.nodes[kSlow].in_kbps = 100'000;
  }
  ~MadeJob() {
    nodes_.clear();
    std::filesystem::remove_all(folder_);
  }

  std::string folder() const { return folder_; }
  std::string file(int rank) const { return folder_ / ("r" + std::to_string(rank) + ".jsonl"); }
  CommRecord& node(int rank) { return *nodes_[static_cast<std::size_t>(rank)]; }
  const Fabric& fabric() const { return fabric_; }

  void connect() {
    for (int rank = 0; rank < kNodes; ++rank) {
      nodes_.push_back(std::make_unique<CommRecord>(*Recorder::open(file(rank), file_bytes_), kComm,
                                                    rank, kNodes));
      node(rank).connected({"node0", "node1", "node2", "node3"});
      PlanRecord plan{
          .cause = "connect", .reason = "direct is the fastest known", .name = "direct"};
      if (rank == 0) {
        plan.fabric = &fabric_;
        plan.predicted_us = 2'700'000;  // 32 MiB out of node2 and into it
        plan.predicted_bytes = 32 << 20;
      }
      node(rank).planned(plan);
    }
    flush();
  }

  // `busy`: of the second. All nodes wait for node2.
  void step(double busy = 0.9) {
    const std::uint64_t begin_ns = seconds_ * kSecondNs;
    const auto busy_ns = static_cast<std::uint64_t>(busy * static_cast<double>(kSecondNs));
    ++seconds_;
    for (int rank = 0; rank < kNodes; ++rank) {
      node(rank).counters().began(begin_ns);
      node(rank).counters().ended(begin_ns + busy_ns, begin_ns, kCallBytes);
      for (int i = 0; i < 10; ++i) node(rank).counters().last_was(rank == kSlow ? 0 : kSlow);
      std::vector<LinkSample> links;
      for (int peer = 0; peer < kNodes; ++peer) {
        if (peer == rank) continue;
        const bool is_slow = peer == kSlow || rank == kSlow;
        links.push_back({.peer = peer,
                         .bytes_out = seconds_ * kLinkBytes,
                         .bytes_in = seconds_ * kLinkBytes,
                         .busy_us = seconds_ * (is_slow ? 880'000u : 200'000u)});
      }
      node(rank).sample(begin_ns + busy_ns, links);
    }
    flush();
  }

  void flush() {
    for (const auto& node : nodes_) node->flush();
  }
  void end() { nodes_.clear(); }

  static constexpr std::uint64_t kCallBytes = 8 << 20, kLinkBytes = 3'500'000;

 private:
  static constexpr std::uint64_t kSecondNs = 1'000'000'000;

  std::filesystem::path folder_;
  std::uint64_t file_bytes_;
  Fabric fabric_;
  std::vector<std::unique_ptr<CommRecord>> nodes_;
  std::uint64_t seconds_ = 0;
};

}  // namespace riffle::tools
