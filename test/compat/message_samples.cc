// Messages of connect, of probing and of replanning intervals, and what survivors tell each other.
#include "plugin/collective/adapt/rate_reports.h"
#include "plugin/collective/base/mode_participant.h"
#include "plugin/collective/connect/messages.h"
#include "plugin/collective/connect/probe_messages.h"
#include "plugin/collective/elastic/recovery_messages.h"
#include "sparse/wire.h"
#include "test/compat/samples.h"
#include "topology/plan/group_plan.h"

namespace riffle::compat {
namespace {

constexpr int kNodes = 4;

template <class Value, class Decode>
Sample message(const std::string& name, const Value& value, Decode decode) {
  return {name, encode(value), [decode](const Bytes& bytes) {
            const auto read = decode(bytes);
            EXPECT_TRUE(read) << read.status().message();
            return read ? encode(*read) : Bytes();
          }};
}

std::vector<NodeReport> reports() {
  NodeReport full;
  full.rank = 3;
  full.host = "n3";
  full.aliases = {"n3.example", "10.1.2.3"};
  full.version = "0.2.0";
  full.knobs = "chunk=1";
  full.problem = "no memory";
  full.rate_kbps = 10'000'000;
  full.knows_rate = true;
  full.speed = {.reduce_mbps = 5000, .stack_mbps = 2000, .message_ns = 1100};
  full.share = {.machine = "boot", .processors = 16};
  full.rack = "r1";
  full.network = "10.1.2.0/24";
  full.knows_lengths = true;
  return {full, NodeReport()};
}

Verdict verdict() {
  return {.problem = "p",
          .fallback_reason = "f",
          .reason = "racks",
          .hosts = {"n0", "n1"},
          .plans = {1, 2, 3},
          .digest = 0x0102030405060708,
          .knows_lengths = true,
          .network = "nodes: []"};
}

GroupPlan pairs_then_pairs() {
  constexpr Share kAll = kShareUnits;
  const Level below = {{{Pattern::kDirect, {0, 1}, {0, kAll / 4, kAll}},
                        {Pattern::kDirect, {2, 3}, {0, kAll / 4, kAll}}}};
  const Level above = {{{Pattern::kRing, {2, 0}, {0, kAll / 8, kAll / 4}},
                        {Pattern::kDirect, {1, 3}, {kAll / 4, kAll / 2, kAll}}}};
  return {kNodes, {below, above}};
}
GroupPlan one_ring() {
  constexpr Share kQuarter = kShareUnits / 4;
  return {kNodes,
          {{{{Pattern::kRing,
              {3, 1, 0, 2},
              {0, kQuarter, 2 * kQuarter, 3 * kQuarter, 4 * kQuarter}}}}}};
}
GroupPlan one_pair() {
  return {kNodes, {{{{Pattern::kDirect, {1, 2}, {0, kShareUnits / 2, kShareUnits}}}}}};
}

PlanSet plans() {
  PlanSet set;
  set.lanes = {pairs_then_pairs(), one_ring()};
  set.name = "pairs x pairs";
  set.chunk_bytes = 1 << 20;
  set.relaxed = {
      .steps = 2, .lanes = 1, .partitions = {one_pair()}, .table = {0, 0}, .chunk_bytes = 1 << 18};
  set.small = {.lanes = {one_ring()}, .name = "ring", .bytes = 4096};
  set.busy_bytes = 300'000;
  return set;
}

ProbeOrder order() {
  return {.number = 5,
          .kind = ProbeOrder::Kind::kRound,
          .duration_us = 50'000,
          .most_bytes = 16u << 20,
          .flows = {{0, 3}, {2, 1}}};
}

ProbeReport report() {
  ProbeReport report;
  report.number = 5;
  report.is_busy = true;
  report.entries = {
      {.flow = {0, 3},
       .sample =
           {.kbps = 900'000, .together_kbps = 800'000, .is_steady = true, .rtt_us = 70, .hops = 2},
       .bytes = 1'000'000}};
  return report;
}

ModeOrder mode() {
  ModeOrder order;
  order.mode = SyncMode::kSparse;
  order.layout = 0x1112131415161718;
  order.chunk_bytes = 1 << 20;
  order.sparse = {.teams = 2,
                  .is_recursive = true,
                  .node_at = {2, 0, 3, 1},
                  .is_sparse = {1, 0, 1},
                  .reason = ""};
  return order;
}

PlanBasis basis() {
  PlanBasis basis;
  basis.fabric = even_fabric(kNodes, 1'000'000);
  basis.fabric.racks = {{"a", 100'000, 200'000}, {"b", 300'000, 400'000}};
  for (int n = 0; n < kNodes; ++n) {
    basis.fabric.nodes[n].rack = n / 2;
    basis.fabric.nodes[n].out_kbps += n;
  }
  basis.fabric.latency_us = 70;
  basis.fabric.rack_latency_us = 30;
  basis.is_nominal = false;
  basis.message_ns = 6'789;
  basis.small_message_ns = 12'345;
  basis.predicted_us = 1234.5;
  basis.planned_bytes = 64 << 20;
  return basis;
}

Bytes written_rates(const std::vector<NodeRates>& rates) {
  ByteWriter w;
  put_rates(&w, rates);
  return w.take();
}
Sample rates() {
  NodeRates node;
  node.rank = 2;
  node.report = {
      .out = {1000, 2000, 30}, .in = {4000, 5000, 60}, .far = {7, 8, 9}, .active_ms = 90};
  node.busy = {.bytes = 11, .busy_ns = 12, .bursts = 13, .others = 14};
  node.processor = 55;
  node.others = 6;
  node.pairs = {{.bytes = 21, .busy_us = 22}, {.bytes = 23, .busy_us = 24}};
  return {"rates_of_an_interval", written_rates({node}), [](const Bytes& bytes) {
            ByteReader reader(bytes);
            const std::vector<NodeRates> read = get_rates(&reader);
            EXPECT_TRUE(reader.is_complete());
            return written_rates(read);
          }};
}

}  // namespace

Samples message_samples() {
  const auto of_nodes = [](auto decode) {
    return [decode](const Bytes& bytes) { return decode(bytes, kNodes); };
  };
  const WorkAccount account = {
      .done = 12, .begun = 17, .unrepeatable = {13, 15}, .mode = {.begin = 40, .end = 90}};
  const RecoveryOrder recovery = {.problem = "p",
                                  .final_below = 7,
                                  .begun_below = 8,
                                  .mode = {.begin = 3, .end = 4},
                                  .plans = {1, 2},
                                  .digest = 9};
  return {
      message("reports", reports(), decode_reports),
      message("verdict", verdict(), decode_verdict),
      message("agreement", Agreement{"no link"}, decode_agreement),
      message("plans", plans(),
              [](const Bytes& bytes) { return decode_plan_set(bytes.data(), bytes.size()); }),
      message("probe_order", order(), of_nodes(decode_probe_order)),
      message("probe_report", report(), of_nodes(decode_probe_report)),
      message("mode_order", mode(), decode_mode_order),
      rates(),
      message("work_account", account, decode_account),
      message("recovery_order", recovery, decode_order),
      message("plan_basis", basis(), of_nodes(decode_basis)),
  };
}

namespace {

constexpr sparse::MessageKind kKind = {.step = 3, .sequence = 44};
const std::vector<sparse::BlockShape> kShapes = {{5, 100}, {6, 8}, {7, 70'000}, {8, 140'000}};

Bytes message_of(std::span<const sparse::Entries> blocks) {
  sparse::MessageWriter writer;
  writer.begin(kKind, blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) writer.add(kShapes[i], blocks[i]);
  return bytes_of(writer.bytes());
}

}  // namespace

Samples sparse_samples() {
  std::vector<sparse::Entries> blocks(kShapes.size());
  blocks[0].append(1, 0.5F);
  blocks[0].append(99, -2.0F);
  for (std::uint32_t i = 0; i < 7; ++i) blocks[1].append(i, static_cast<float>(i + 1));  // dense
  blocks[2].append(69'999, 3.0F);  // wide indices
  for (const std::uint32_t i : {1U, 2U, 3U, 65'535U, 65'536U, 70'000U, 139'998U, 139'999U}) {
    blocks[3].append(i, 4.0F);  // a count for each 65536 elements, and halves
  }
  return {{"sparse_message", message_of(blocks), [](const Bytes& bytes) {
             std::vector<sparse::Entries> read(kShapes.size());
             const Status s = sparse::read_message(bytes, kKind, kShapes, read);
             EXPECT_TRUE(s) << s.message();
             return message_of(read);
           }}};
}

}  // namespace riffle::compat
