#include "plugin/telemetry/comm_record.h"

#include <algorithm>
#include <utility>

#include "plugin/telemetry/json_line.h"
#include "plugin/telemetry/process_line.h"
#include "topology/base/time.h"
#include "topology/plan/planner.h"

namespace riffle {
namespace {

constexpr std::uint64_t kLeastIntervalNs = kSecond;
constexpr std::uint64_t kBytesPerSecond = 8 << 10;

void add_fabric(JsonLine& line, const Fabric& fabric, bool is_nominal) {
  line.open("fabric", '{').add("latency_us", fabric.latency_us);
  if (is_nominal) line.add("nominal", true);
  if (fabric.rack_latency_us) line.add("rack_latency_us", *fabric.rack_latency_us);
  line.open("racks", '[');
  for (const RackLink& rack : fabric.racks) {
    line.open("", '{').add("name", rack.name).add("up_kbps", rack.up_kbps);
    line.add("down_kbps", rack.down_kbps).close('}');
  }
  line.close(']').open("nodes", '[');
  for (const NodeLink& node : fabric.nodes) {
    line.open("", '{').add("name", node.name).add("out_kbps", node.out_kbps);
    line.add("in_kbps", node.in_kbps).add("rack", node.rack).close('}');
  }
  line.close(']').close('}');
}

void add_sizes(JsonLine& line, const CommCounters& counters) {
  line.open("sizes", '[');
  for (int k = 0; k < kSizeClasses; ++k) {
    const CommCounters::SizeClass& c = counters.classes()[static_cast<std::size_t>(k)];
    if (c.count == 0) continue;
    line.open("", '{').add("up_to", std::uint64_t{1} << k).add("count", c.count);
    line.add("bytes", c.bytes).add("total_us", c.total_us).add("max_us", c.max_us);
    line.open("times", '[');  // [begin of the bucket in us, operations]
    for (int b = 0; b < kTimeBuckets; ++b) {
      const std::uint32_t n = c.times[static_cast<std::size_t>(b)];
      if (n == 0) continue;
      line.open("", '[').add("", bucket_begin_us(b)).add("", std::uint64_t{n}).close(']');
    }
    line.close(']').close('}');
  }
  line.close(']');
}

}  // namespace

// A line of this communicator.
class CommRecord::Line : public JsonLine {
 public:
  Line(const CommRecord& comm, const char* type) {
    add("type", type).raw("t", line_time()).add("comm", comm.key_);
    add("rank", comm.rank_);
  }
};

std::unique_ptr<CommRecord> CommRecord::begin(const RecordOptions& options, std::uint64_t comm_id,
                                              int rank, int size) {
  std::shared_ptr<Recorder> recorder = Recorder::acquire(options);
  if (!recorder) return nullptr;
  return std::make_unique<CommRecord>(std::move(recorder), comm_id, rank, size);
}

CommRecord::CommRecord(std::shared_ptr<Recorder> recorder, std::uint64_t comm_id, int rank,
                       int size)
    : recorder_(std::move(recorder)),
      key_(hex16(comm_id)),
      rank_(rank),
      size_(size),
      counters_(size),
      interval_ns_(kLeastIntervalNs) {
  recorder_->write_standing("", process_line());
}

CommRecord::~CommRecord() {
  recorder_->drop_standing(key_ + " comm");
  recorder_->drop_standing(key_ + " plan");
  recorder_->drop_standing(key_ + " mode");
}

void CommRecord::connected(const std::vector<std::string>& hosts) {
  Line line(*this, "comm");
  line.add("size", size_);
  add_hosts(line, hosts);
  recorder_->write_standing(key_ + " comm", line.take());
}

void CommRecord::planned(const PlanRecord& plan) {
  Line line(*this, "plan");
  line.add("from_chunk", plan.from_chunk).add("cause", plan.cause).add("name", plan.name);
  line.add("digest", hex16(plan.digest)).add("reason", plan.reason).add("trigger", plan.trigger);
  if (plan.predicted_us > 0) {
    line.add("predicted_us", plan.predicted_us).add("predicted_bytes", plan.predicted_bytes);
  }
  if (plan.fabric != nullptr) {
    // The bound is proportional to the size: readers without a planner need one number.
    line.add("bound_us_per_mib", bound_us(*plan.fabric, 1 << 20));
    add_fabric(line, *plan.fabric, plan.is_nominal);
  }
  recorder_->write_standing(key_ + " plan", line.take());
}

void CommRecord::failed(const std::string& why) {
  recorder_->write(Line(*this, "failed").add("why", why).take());
}

void CommRecord::mode_changed(const ModeRecord& mode) {
  Line line(*this, "mode");
  line.add("mode", mode.mode).add("from_call", mode.from_call).add("cause", mode.cause);
  if (!mode.rule.empty()) line.add("rule", mode.rule);
  recorder_->write_standing(key_ + " mode", line.take());
}

void CommRecord::survived(const LossRecord& loss) {
  Line line(*this, "loss");
  line.open("lost", '[');
  for (const LossRecord::Node& node : loss.lost) {
    line.open("", '{').add("rank", node.rank).add("why", node.why).close('}');
  }
  line.close(']').add("left", loss.left).add("recovery_ms", loss.recovery_ms);
  recorder_->write(line.take());
}

void CommRecord::sample(std::uint64_t now_ns, const std::vector<LinkSample>& links,
                        const RelaxedTotals* relaxed) {
  Line line(*this, "sample");
  line.add("active_us", counters_.active_us(now_ns)).add("bursts", counters_.bursts());
  add_sizes(line, counters_);
  line.open("links", '[');
  for (const LinkSample& link : links) {
    if (link.bytes_out == 0 && link.bytes_in == 0) continue;
    line.open("", '{').add("peer", link.peer).add("out", link.bytes_out).add("in", link.bytes_in);
    line.add("busy_us", link.busy_us).add("retransmits", link.retransmits);
    line.add("rtt_us", std::uint64_t{link.rtt_us});
    line.add("last", counters_.late()[static_cast<std::size_t>(link.peer)]).close('}');
  }
  line.close(']').add("last_self", counters_.late()[static_cast<std::size_t>(rank_)]);
  line.add("others", counters_.others());
  if (relaxed != nullptr) {
    line.open("relaxed", '{').add("calls", relaxed->calls).add("full_calls", relaxed->full_calls);
    line.add("doubts", relaxed->doubts).add("mismatches", relaxed->mismatches);
    line.add("not_finite", relaxed->not_finite).add("deviations", relaxed->deviations);
    line.add("rounds", relaxed->rounds).add("waits", relaxed->waits);
    line.add("corrections", relaxed->corrections).add("gap_steps", relaxed->gap_steps);
    line.add("longest_gap", relaxed->longest_gap);
    line.add("sparse_chunks", relaxed->sparse_chunks).add("redone", relaxed->redone);
    line.add("sparse_elements", relaxed->sparse_elements);
    line.add("sparse_bytes", relaxed->sparse_bytes).add("brought", relaxed->brought);
    line.add("sparse_work_us", relaxed->sparse_work_us);
    line.add("sparse_span_us", relaxed->sparse_span_us).close('}');
  }
  std::string text = line.take();
  interval_ns_ = std::max(kLeastIntervalNs, text.size() * kSecond / kBytesPerSecond);
  recorder_->write(text);
}

}  // namespace riffle
