#include "tools/explain/record_lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/record_files.h"

namespace riffle::tools {
namespace {

using nlohmann::json;

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
  // Records of earlier versions have none of these.
  plan.trigger = line.value("trigger", std::string());
  plan.predicted_us = line.value("predicted_us", 0.0);
  plan.predicted_bytes = line.value("predicted_bytes", std::uint64_t{0});
  if (line.contains("fabric")) {
    Fabric fabric = fabric_of(line.at("fabric"));
    plan.is_nominal = line.at("fabric").value("nominal", false);
    if (validate(fabric) && fabric.size() == size) plan.fabric = std::move(fabric);
  }
  return plan;
}

std::string text_in(const json& line, const char* name) {
  const auto at = line.find(name);
  return at != line.end() && at->is_string() ? at->get<std::string>() : std::string();
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
  sample.bursts = line.value("bursts", std::uint64_t{0});
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

// From the lines of communicators to what they say.
class Builder {
 public:
  void add_comm(const std::string& key, const std::vector<json>& comm_lines,
                const std::vector<json>& others,
                const std::map<int, std::multimap<double, json>>& samples) {
    CommRecords comm;
    for (const json& line : comm_lines)
      guarded(key, [&] {
        std::vector<std::string> hosts = line.at("hosts");
        if (hosts.size() < 2 || hosts.size() > kMaxNodes) return;
        comm.hosts = std::move(hosts);
        const std::string job = line.value("slurm_job_id", std::string());
        if (!job.empty()) comm.slurm_job_id = job;
        const std::string version = line.value("riffle", std::string());
        if (!version.empty()) comm.version = version;
      });
    for (const json& line : comm_lines)
      guarded(key, [&] {
        const int rank = line.at("rank");
        if (rank >= 0 && rank < comm.size()) comm.nodes[rank].connected_t = line.at("t");
      });
    for (const json& line : others) guarded(key, [&] { add_line(key, line, comm); });
    for (const auto& [rank, lines] : samples) {
      if (rank < 0 || rank >= comm.size()) continue;
      std::vector<Sample>& to = comm.nodes[rank].samples;
      for (const auto& [t, line] : lines)
        guarded(key, [&, &line = line] { to.push_back(sample_of(line, comm.size())); });
    }
    for (auto& [rank, node] : comm.nodes) sort(node);
    if (comm.size() > 0) job_.comms[key] = std::move(comm);
  }

  JobRecord take() {
    std::stable_sort(job_.failures.begin(), job_.failures.end(), by_time);
    return std::move(job_);
  }

 private:
  static constexpr auto by_time = [](const auto& a, const auto& b) { return a.t < b.t; };

  void add_line(const std::string& key, const json& line, CommRecords& comm) {
    const std::string type = line.at("type");
    const int rank = line.at("rank");
    if (comm.size() == 0) {
      if (type != "failed") return;
      job_.failures.push_back(
          {line.at("t"), key, line.value("slurm_job_id", std::string()), line.at("why")});
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

  // A plan stands in front of every file again; samples come in order.
  static void sort(NodeRecord& node) {
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
  std::set<std::string> complained_;
};

// What is cut off or not of a record is noted.
Status read_file(const std::string& path, RecordLines& lines, std::vector<std::string>& notes) {
  std::ifstream in(path);
  if (!in) return system_error(path + ": cannot be read: " + std::strerror(errno));
  std::uint64_t number = 0, bad = 0, first_bad = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (lines.add(path, line)) continue;
    if (bad++ == 0) first_bad = number;
  }
  if (bad == 0) return Status::ok();
  notes.push_back(path + ": " + std::to_string(bad) + " of " + std::to_string(number) +
                  " lines are cut off or not of a record, the first is line " +
                  std::to_string(first_bad));
  return Status::ok();
}

}  // namespace

struct RecordLines::Kept {
  struct Comm {
    double newest_t = 0;
    std::vector<json> comms, others;
    std::map<int, std::multimap<double, json>> samples;  // by rank and time
  };
  std::map<std::string, Comm> comms;
  struct Process {
    std::string slurm_job_id, version;  // empty: it does not say
  };
  std::map<std::string, Process> processes;  // by file
  std::uint64_t added = 0;
};

RecordLines::RecordLines() : kept_(std::make_unique<Kept>()) {}
RecordLines::~RecordLines() = default;
RecordLines::RecordLines(RecordLines&&) noexcept = default;
RecordLines& RecordLines::operator=(RecordLines&&) noexcept = default;

bool RecordLines::add(const std::string& file, const std::string& text) {
  if (text.size() > kMaxRecordLineBytes) return false;
  json line = json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("type") || !line["type"].is_string()) return false;
  ++kept_->added;
  const std::string type = line["type"];
  if (type == "process") {
    kept_->processes[file] = {text_in(line, "slurm_job_id"), text_in(line, "riffle")};
  }
  if (type == "process" || type == "dropped") return true;
  if (!line.contains("comm") || !line["comm"].is_string()) return false;
  Kept::Comm& comm = kept_->comms[line["comm"]];
  const bool has_time = line.contains("t") && line["t"].is_number();
  const double t = has_time ? line["t"].get<double>() : 0;
  comm.newest_t = std::max(comm.newest_t, t);
  const bool has_rank = line.contains("rank") && line["rank"].is_number_integer();
  if (type == "sample" && has_time && has_rank) {
    comm.samples[line["rank"].get<int>()].emplace(t, std::move(line));
    return true;
  }
  if (const auto process = kept_->processes.find(file); process != kept_->processes.end()) {
    line["slurm_job_id"] = process->second.slurm_job_id;
    line["riffle"] = process->second.version;
  }
  (type == "comm" ? comm.comms : comm.others).push_back(std::move(line));
  return true;
}

void RecordLines::forget(double oldest_t, double window_s) {
  std::erase_if(kept_->comms, [&](const auto& c) { return c.second.newest_t < oldest_t; });
  for (auto& [key, comm] : kept_->comms) {
    for (auto& [rank, lines] : comm.samples) {
      auto first = lines.upper_bound(lines.rbegin()->first - window_s);
      if (first != lines.begin()) --first;
      lines.erase(lines.begin(), first);
    }
  }
}

bool RecordLines::is_empty() const { return kept_->added == 0; }

JobRecord RecordLines::job() const {
  Builder builder;
  for (const auto& [key, comm] : kept_->comms) {
    builder.add_comm(key, comm.comms, comm.others, comm.samples);
  }
  return builder.take();
}

Result<std::vector<std::string>> record_files(const std::vector<std::string>& paths) {
  return job_files(paths, ".jsonl", "record");
}

Result<JobRecord> read_records(const std::vector<std::string>& paths) {
  const auto files = record_files(paths);
  if (!files) return files.status();
  RecordLines lines;
  std::vector<std::string> notes;
  for (const std::string& file : files.value()) {
    if (Status s = read_file(file, lines, notes); !s) return s;
  }
  if (lines.is_empty()) {
    return invalid_argument(
        (paths.size() == 1 ? paths.front() : "the given paths") +
        ": no record of Riffle; run the job with RIFFLE_RECORD=FOLDER/ and give that folder");
  }
  JobRecord job = lines.job();
  job.notes.insert(job.notes.begin(), notes.begin(), notes.end());
  return job;
}

}  // namespace riffle::tools
