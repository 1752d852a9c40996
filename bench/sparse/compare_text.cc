// How rows of a comparison are printed and kept.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/sparse/compare.h"

namespace riffle::bench {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char line[512];
  std::snprintf(line, sizeof line, pattern, args...);
  return line;
}

std::string range_text(const Formula& formula, std::uint64_t k) {
  const auto in_k = [&](std::uint64_t entries) {
    return static_cast<double>(entries) / static_cast<double>(k);
  };
  if (formula.least_entries == formula.most_entries)
    return format("%.2f", in_k(formula.most_entries));
  return format("%.2f-%.2f", in_k(formula.least_entries), in_k(formula.most_entries));
}

std::string percent(double load) { return load < 0 ? "-" : format("%.0f", 100 * load); }

constexpr char kColumns[] = " %12s %8s %8s %7s %7s %5s %7s %8s %11s %9s %9s %7s %5s %5s %7s\n";

}  // namespace

std::string sparse_head(const SparseQuestion& question, const SparseRow& row) {
  std::string text = format(
      "#\n# Sparse, %zu bytes of float, k = %llu entries (%g), %s gradients, medians of %d in "
      "turns.\n",
      row.bytes, static_cast<unsigned long long>(row.kept), question.density,
      question.gradients.empty() ? "generated" : question.gradients.c_str(), row.iters);
  text +=
      "# time: the gradients are there -> the last has the result's entries. wire: the\n"
      "# same messages replayed, nothing read, added or selected. comp: processor time of the "
      "mean\n"
      "# worker within time; again: of that, selecting again. Per worker, whichever sends most: "
      "msgs,\n"
      "# entries in units of k, kB of messages, tx with all headers as the interface counts; "
      "formula\n"
      "# beside them. result: entries in units of k. cpu: of the whole machine, in time and in "
      "wire.\n";
  std::string head = format(kColumns, "scheme", "time", "wire", "comp", "again", "msgs", "formula",
                            "entries", "formula", "kB", "tx kB", "result", "cpu", "cpu", "x dense");
  head += format(kColumns, "", "(ms)", "(ms)", "(ms)", "(ms)", "", "", "(k)", "(k)", "", "", "(k)",
                 "(%)", "wire", "");
  for (std::size_t at = 0; at != std::string::npos; at = head.find('\n', at + 1)) {
    if (at + 1 < head.size()) head[at == 0 ? 0 : at + 1] = '#';
  }
  return text + head;
}

std::string sparse_line(const SparseRow& row) {
  const auto k = static_cast<double>(row.kept);
  std::string scheme = row.scheme;
  if (row.teams > 1) {
    const std::size_t name = scheme.find('/');
    scheme.insert(std::min(name, scheme.size()), "-d" + std::to_string(row.teams));
  }
  std::string text = format(
      kColumns, scheme.c_str(), format("%.2f", row.time_us / 1e3).c_str(),
      format("%.2f", row.wire_us / 1e3).c_str(), format("%.2f", row.compute_us / 1e3).c_str(),
      format("%.2f", row.reselect_us / 1e3).c_str(), std::to_string(row.sent.messages).c_str(),
      std::to_string(row.formula.messages).c_str(),
      format("%.3f", static_cast<double>(row.sent.entries) / k).c_str(),
      range_text(row.formula, row.kept).c_str(),
      format("%.1f", static_cast<double>(row.sent.bytes) / 1e3).c_str(),
      (row.tx_bytes < 0 ? std::string("-") : format("%.1f", row.tx_bytes / 1e3)).c_str(),
      format("%.3f", row.result_entries / k).c_str(), percent(row.cpu_load).c_str(),
      percent(row.wire_cpu_load).c_str(),
      (row.x_dense > 0 ? format("%.1f", row.x_dense) : std::string("-")).c_str());
  text.pop_back();
  if (row.cpu_bound()) text += "  CPU-bound";
  if (row.wire_cpu_bound()) text += "  wire CPU-bound";
  if (row.wrong > 0) text += format("  WRONG in %d iterations", row.wrong);
  return text + "\n";
}

nlohmann::json to_json(const SparseRow& row) {
  nlohmann::json item = {{"schema", "riffle-bench-sparse-1"},
                         {"profile", row.profile},
                         {"scheme", row.scheme},
                         {"ranks", row.ranks},
                         {"teams", row.teams},
                         {"bytes", row.bytes},
                         {"k", row.kept},
                         {"iters", row.iters},
                         {"time_us", row.time_us},
                         {"samples_us", row.samples_us},
                         {"wire_us", row.wire_us},
                         {"compute_us", row.compute_us},
                         {"reselect_us", row.reselect_us},
                         {"result_entries", row.result_entries},
                         {"messages", row.sent.messages},
                         {"messages_formula", row.formula.messages},
                         {"entries", row.sent.entries},
                         {"entries_formula", {row.formula.least_entries, row.formula.most_entries}},
                         {"message_bytes", row.sent.bytes},
                         {"tx_bytes", nullptr},
                         {"cpu_load", nullptr},
                         {"wire_cpu_load", nullptr},
                         {"cpu_bound", row.cpu_bound()},
                         {"wire_cpu_bound", row.wire_cpu_bound()},
                         {"wrong", row.wrong}};
  if (row.tx_bytes >= 0) item["tx_bytes"] = row.tx_bytes;
  if (row.cpu_load >= 0) item["cpu_load"] = row.cpu_load;
  if (row.wire_cpu_load >= 0) item["wire_cpu_load"] = row.wire_cpu_load;
  return item;
}

}  // namespace riffle::bench
