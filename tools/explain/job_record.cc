#include "tools/explain/job_record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace riffle::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxRecordLineBytes = 64 << 20;

Result<std::vector<std::string>> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::is_regular_file(path, error)) {
        return invalid_argument("record " + path + ": there is no such file or folder");
      }
      files.push_back(path);
      if (fs::is_regular_file(path + ".1", error)) files.push_back(path + ".1");
      continue;
    }
    for (const auto& entry : fs::directory_iterator(path, error)) {
      const std::string name = entry.path().string();
      if (name.ends_with(".jsonl") || name.ends_with(".jsonl.1")) files.push_back(name);
    }
    if (error) return system_error("record " + path + ": " + error.message());
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

Fabric fabric_of(const json& from) {
  Fabric fabric;
  fabric.latency_us = from.at("latency_us").get<std::int64_t>();
  if (from.contains("rack_latency_us")) {
    fabric.rack_latency_us = from.at("rack_latency_us").get<std::int64_t>();
  }
  for (const json& rack : from.at("racks")) {
    fabric.racks.push_back({rack.at("name"), rack.at("up_kbps"), rack.at("down_kbps")});
  }
  for (const json& node : from.at("nodes")) {
    fabric.nodes.push_back(
        {node.at("name"), node.at("out_kbps"), node.at("in_kbps"), node.at("rack")});
  }
  return fabric;
}

PlanEvent plan_of(const json& line, int size) {
  PlanEvent plan{line.at("t"),    line.at("from_chunk"), line.at("cause"), line.at("reason"),
                 line.at("name"), line.at("digest"),     std::nullopt};
  if (line.contains("fabric")) {
    Fabric fabric = fabric_of(line.at("fabric"));
    if (validate(fabric) && fabric.size() == size) plan.fabric = std::move(fabric);
  }
  return plan;
}

// Ranks are those of the job: what names others is not understood.
LossEvent loss_of(const json& line, int size) {
  LossEvent loss;
  loss.t = line.at("t");
  loss.left = line.at("left");
  loss.recovery_ms = line.at("recovery_ms");
  for (const json& node : line.at("lost")) {
    const int rank = node.at("rank");
    if (rank >= 0 && rank < size) loss.lost.emplace_back(rank, node.at("why"));
  }
  return loss;
}

Sample sample_of(const json& line, int size) {
  Sample sample;
  sample.t = line.at("t");
  sample.active_us = line.at("active_us");
  sample.last_self = line.at("last_self");
  sample.others = line.at("others");
  if (line.contains("relaxed")) {
    const json& r = line["relaxed"];
    sample.relaxed = {r.at("calls"),      r.at("full_calls"), r.at("doubts"),
                      r.at("mismatches"), r.at("not_finite"), r.at("deviations")};
    // Records of earlier versions have none of these.
    RelaxedUse& use = *sample.relaxed;
    use.rounds = r.value("rounds", std::uint64_t{0});
    use.waits = r.value("waits", std::uint64_t{0});
    use.corrections = r.value("corrections", std::uint64_t{0});
    use.gap_steps = r.value("gap_steps", std::uint64_t{0});
    use.longest_gap = r.value("longest_gap", std::uint64_t{0});
    use.sparse_chunks = r.value("sparse_chunks", std::uint64_t{0});
    use.redone = r.value("redone", std::uint64_t{0});
    use.sparse_elements = r.value("sparse_elements", std::uint64_t{0});
    use.sparse_bytes = r.value("sparse_bytes", std::uint64_t{0});
    use.brought = r.value("brought", std::uint64_t{0});
    use.sparse_work_us = r.value("sparse_work_us", std::uint64_t{0});
    use.sparse_span_us = r.value("sparse_span_us", std::uint64_t{0});
  }
  for (const json& s : line.at("sizes")) {
    SizeTotals& totals = sample.sizes[s.at("up_to")];
    totals = {s.at("count"), s.at("bytes"), s.at("total_us"), s.at("max_us"), {}};
    for (const json& bucket : s.at("times")) totals.times[bucket.at(0)] = bucket.at(1);
  }
  for (const json& l : line.at("links")) {
    const int peer = l.at("peer");
    if (peer < 0 || peer >= size) continue;
    sample.links[peer] = {l.at("out"), l.at("in"), l.at("busy_us"), l.at("retransmits"),
                          l.at("last")};
  }
  return sample;
}

class Reader {
 public:
  void read(const std::string& path) {
    std::ifstream in(path);
    std::uint64_t number = 0, bad = 0, first_bad = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (line.size() <= kMaxRecordLineBytes && understand(line)) continue;
      if (bad++ == 0) first_bad = number;
    }
    if (bad > 0) {
      job_.notes.push_back(path + ": " + std::to_string(bad) + " of " + std::to_string(number) +
                           " lines are cut off or not of a record, the first is line " +
                           std::to_string(first_bad));
    }
  }

  bool has_lines() const { return lines_ > 0; }

  // Lines of one communicator may lie in several files, in any order.
  JobRecord take() {
    for (auto& [key, lines] : comm_lines_) add_comm(key, lines);
    for (auto& [key, comm] : job_.comms) {
      for (auto& [rank, node] : comm.nodes) sort(node);
    }
    return std::move(job_);
  }

 private:
  struct Lines {
    std::vector<json> comms, others;
  };

  bool understand(const std::string& text) {
    json line = json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("type") || !line["type"].is_string()) return false;
    ++lines_;
    const std::string type = line["type"];
    if (type == "process" || type == "dropped") return true;
    if (!line.contains("comm") || !line["comm"].is_string()) return false;
    Lines& lines = comm_lines_[line["comm"]];
    (type == "comm" ? lines.comms : lines.others).push_back(std::move(line));
    return true;
  }

  void add_comm(const std::string& key, const Lines& lines) {
    CommRecords comm;
    for (const json& line : lines.comms)
      guarded(key, [&] {
        std::vector<std::string> hosts = line.at("hosts");
        if (hosts.size() < 2 || hosts.size() > kMaxNodes) return;
        comm.hosts = std::move(hosts);
      });
    for (const json& line : lines.comms)
      guarded(key, [&] {
        const int rank = line.at("rank");
        if (rank >= 0 && rank < comm.size()) comm.nodes[rank].connected_t = line.at("t");
      });
    for (const json& line : lines.others) guarded(key, [&] { add_line(line, comm); });
    if (comm.size() > 0) job_.comms[key] = std::move(comm);
  }

  void add_line(const json& line, CommRecords& comm) {
    const std::string type = line.at("type");
    const int rank = line.at("rank");
    if (comm.size() == 0) {
      if (type == "failed") job_.failures.push_back(line.at("why"));
      return;
    }
    if (rank < 0 || rank >= comm.size()) return;
    NodeRecord& node = comm.nodes[rank];
    if (type == "plan") node.plans.push_back(plan_of(line, comm.size()));
    if (type == "mode") {
      node.modes.push_back({line.at("t"), line.at("from_call"), line.at("mode"), line.at("cause"),
                            line.value("rule", std::string())});
    }
    if (type == "loss") node.losses.push_back(loss_of(line, comm.size()));
    if (type == "sample") node.samples.push_back(sample_of(line, comm.size()));
    if (type == "failed") node.failures.push_back(line.at("why"));
  }

  // A field that is missing or of another kind: the line is left out.
  template <class F>
  void guarded(const std::string& key, F f) {
    try {
      f();
    } catch (const json::exception& e) {
      if (complained_.insert(key).second) {
        job_.notes.push_back("communicator " + key + ": a line is not understood: " + e.what());
      }
    }
  }

  // A plan stands in front of every file again; samples come in order within a file.
  static void sort(NodeRecord& node) {
    const auto by_time = [](const auto& a, const auto& b) { return a.t < b.t; };
    std::stable_sort(node.samples.begin(), node.samples.end(), by_time);
    std::stable_sort(node.plans.begin(), node.plans.end(), by_time);
    std::stable_sort(node.losses.begin(), node.losses.end(), by_time);
    std::stable_sort(node.modes.begin(), node.modes.end(), by_time);
    const auto same_mode = [](const ModeEvent& a, const ModeEvent& b) {
      return a.t == b.t && a.from_call == b.from_call;
    };
    node.modes.erase(std::unique(node.modes.begin(), node.modes.end(), same_mode),
                     node.modes.end());
    const auto same = [](const PlanEvent& a, const PlanEvent& b) {
      return a.t == b.t && a.from_chunk == b.from_chunk;
    };
    node.plans.erase(std::unique(node.plans.begin(), node.plans.end(), same), node.plans.end());
  }

  JobRecord job_;
  std::map<std::string, Lines> comm_lines_;
  std::set<std::string> complained_;
  std::uint64_t lines_ = 0;
};

}  // namespace

void RelaxedUse::add(const RelaxedUse& other) {
  calls += other.calls;
  full_calls += other.full_calls;
  doubts += other.doubts;
  mismatches += other.mismatches;
  not_finite += other.not_finite;
  deviations += other.deviations;
  rounds += other.rounds;
  waits += other.waits;
  corrections += other.corrections;
  gap_steps += other.gap_steps;
  longest_gap = std::max(longest_gap, other.longest_gap);
  sparse_chunks += other.sparse_chunks;
  redone += other.redone;
  sparse_elements += other.sparse_elements;
  sparse_bytes += other.sparse_bytes;
  brought += other.brought;
  sparse_work_us += other.sparse_work_us;
  sparse_span_us += other.sparse_span_us;
}

double RelaxedUse::mean_gap() const {
  return corrections == 0 ? 0 : static_cast<double>(gap_steps) / static_cast<double>(corrections);
}

double SizeTotals::quantile_us(double q) const {
  const double wanted = q * static_cast<double>(count);
  double seen = 0;
  for (const auto& [begin_us, operations] : times) {
    seen += static_cast<double>(operations);
    // Buckets are at most half an octave wide.
    if (seen >= wanted) {
      return std::min(static_cast<double>(max_us), static_cast<double>(begin_us) * 1.5);
    }
  }
  return static_cast<double>(max_us);
}

Result<JobRecord> read_records(const std::vector<std::string>& paths) {
  const auto files = files_of(paths);
  if (!files) return files.status();
  Reader reader;
  for (const std::string& file : files.value()) reader.read(file);
  if (!reader.has_lines()) {
    return invalid_argument(
        (paths.size() == 1 ? paths.front() : "the given paths") +
        ": no record of Riffle; run the job with RIFFLE_RECORD=FOLDER/ and give that folder");
  }
  return reader.take();
}

}  // namespace riffle::tools
