#include "bench/harness/report.h"

#include <nlohmann/json.hpp>

#include "lab/cluster/congestion.h"
#include "topology/base/printed.h"

namespace riffle::bench {
namespace {

// nccl-tests print how many digits they need; the widths are theirs.
constexpr char kHead[] = "#%17s %12s %12s %8s %6s %4s %10s %7s %7s %7s %10s %8s %5s %6s %7s\n";

}  // namespace

std::string table_head(const cluster::Profile& profile, bool emulated,
                       const std::string& congestion) {
  std::string text = "# " + profile.name + ": " + profile.about + "\n";
  if (!emulated) {
    text += "# No namespaces here: all processes on loopback, no rates, hence no bound.\n";
  } else if (profile.shaped()) {
    text +=
        "# bound: no exact all-reduce can be faster; it counts what an ideal TCP flow carries as\n"
        "# payload at MTU 1500, 1448/1514 of a link's rate. time: median, slowest rank.\n";
  } else {
    text += "# Links without rate: no bound. time: median, slowest rank.\n";
  }
  text +=
      congestion == "system"
          ? "# TCP congestion control: the machine's; riffle and nccl-* choose for themselves.\n"
          : printed("# TCP of all: congestion control %s, retransmission timeouts from %d ms.\n",
                    congestion.c_str(), cluster::kRtoMinMs);
  text +=
      "# nccl-*: the Simple protocol, whose hand-over to a GPU costs nothing here; the "
      "low-latency\n"
      "# protocol (LL) would put twice the bytes on the wire (docs/commands.md).\n"
      "# cpu: of the whole machine, whose processors all nodes share. tx/S: bytes that the "
      "busiest\n"
      "# node put on the wire per byte of the buffer. cpu/GB: CPU seconds per GB of buffer and "
      "node,\n"
      "# of the whole process; for riffle, nccl-* and blueconnect of the plugin's own threads, "
      "which\n"
      "# leave calls of up to 64 KiB to the host's, and all on fewer than 8 CPUs (-; "
      "RIFFLE_POLLED_BYTES).\n#\n";
  text += printed(kHead, "peer", "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
                  "#wrong", "bound", "x bound", "cpu", "tx/S", "cpu/GB");
  return text + printed(kHead, "", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
                        "(us)", "", "(%)", "", "(s)");
}

std::string table_line(const Row& row) {
  const Question& q = row.question;
  std::string text =
      printed(" %17s %12zu %12zu %8s %6s %4d %10.1f %7.4f %7.4f %7zu ", row.peer.c_str(), q.bytes,
              q.bytes / size_of(q.type), name_of(q.type), name_of(static_cast<ReduceOp>(q.op)), -1,
              row.time_us, row.algbw_gbs(), row.busbw_gbs(), row.wrong);
  text += row.bound_us > 0 ? printed("%10.1f %8.3f ", row.bound_us, row.x_bound())
                           : printed("%10s %8s ", "-", "-");
  text += row.cpu_load >= 0 ? printed("%5.0f ", 100 * row.cpu_load) : printed("%5s ", "-");
  text += row.sent_per_byte >= 0 ? printed("%6.2f", row.sent_per_byte) : printed("%6s", "-");
  text += row.cpu_s_per_gb > 0 ? printed(" %7.2f", row.cpu_s_per_gb) : printed(" %7s", "-");
  if (row.variant != row.peer) text += "  " + row.variant;
  if (row.network == "file") text += "  told the network";
  if (row.network == "racks") text += "  told the racks";
  if (row.cpu_bound()) text += "  CPU-bound";
  if (row.off_wire) text += "  OFF THE WIRE: some bytes did not cross the network";
  if (row.wrong > 0) text += "  WRONG RESULT";
  if (row.is_density_wrong()) text += "  WRONG DENSITY";
  return text + "\n";
}

namespace {

nlohmann::json to_json(const std::vector<Rival>& rivals) {
  nlohmann::json array = nlohmann::json::array();
  for (const Rival& rival : rivals) {
    array.push_back({{"variant", rival.variant}});
    if (rival.failure.empty()) {
      array.back().update({{"time_us", rival.time_us}, {"samples_us", rival.samples_us}});
    } else {
      array.back()["failed"] = rival.failure;
    }
  }
  return array;
}

}  // namespace

std::string to_json(const std::vector<Row>& rows) {
  nlohmann::json array = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json item = {{"schema", "riffle-bench-1"},
                           {"profile", row.profile},
                           {"peer", row.peer},
                           {"variant", row.variant},
                           {"network", row.network},
                           {"congestion", row.congestion},
                           {"rto_min_ms", nullptr},
                           {"bytes", row.question.bytes},
                           {"dtype", name_of(row.question.type)},
                           {"redop", name_of(static_cast<ReduceOp>(row.question.op))},
                           {"iters", row.question.iters},
                           {"time_us", row.time_us},
                           {"mean_us", row.mean_us},
                           {"samples_us", row.samples_us},
                           {"plan_changes", nullptr},
                           {"rivals", to_json(row.rivals)},
                           {"algbw_gbs", row.algbw_gbs()},
                           {"busbw_gbs", row.busbw_gbs()},
                           {"wrong", row.wrong},
                           {"bound_us", nullptr},
                           {"x_bound", nullptr},
                           {"cpu_load", nullptr},
                           {"cpu_bound", row.cpu_bound()},
                           {"cpu_s_per_gb", nullptr},
                           {"sent_per_byte", nullptr},
                           {"off_wire", row.off_wire}};
    if (row.cpu_s_per_gb > 0) item["cpu_s_per_gb"] = row.cpu_s_per_gb;
    if (row.congestion != "system") item["rto_min_ms"] = cluster::kRtoMinMs;
    if (row.bound_us > 0) {
      item["bound_us"] = row.bound_us;
      item["x_bound"] = row.x_bound();
    }
    if (row.cpu_load >= 0) item["cpu_load"] = row.cpu_load;
    if (row.sent_per_byte >= 0) item["sent_per_byte"] = row.sent_per_byte;
    if (row.plan_changes >= 0) item["plan_changes"] = row.plan_changes;
    if (row.question.is_sparse) item["not_zero"] = row.not_zero;
    array.push_back(std::move(item));
  }
  return array.dump(2) + "\n";
}

}  // namespace riffle::bench
