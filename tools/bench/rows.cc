#include "tools/bench/rows.h"

#include <fstream>
#include <optional>

#include "bench/harness/report.h"
#include "plugin/entry/sync_settings.h"

namespace riffle::tools {

using bench::Peer;
using bench::Question;
using bench::Row;
using bench::Session;

namespace {

// What the mode was, and what it did besides. False: there was none, though it was asked for.
bool show_mode(const Session& session, const BenchOptions& options, const Row& row) {
  const std::string mode = session.mode();
  if (!mode.empty()) {
    std::printf("# %s\n", mode.c_str());
    if (options.is_sparse()) {
      std::printf("# %.3g %% of the elements of a result are not zero\n", 100 * row.not_zero);
    }
    return true;
  }
  const std::string why = session.said("sparse does not begin");
  const bool is_choice = sparse_wish(options.sparse).is_auto && !why.empty();
  std::printf("# %s\n", is_choice ? why.c_str() : "the relaxed mode did not begin");
  return is_choice;
}

// Of each size in order; fewer where the peer fails.
std::vector<Row> measure_peer(Session& session, const Peer& peer, const std::vector<Question>& all,
                              const BenchOptions& options, BenchFindings& findings) {
  const Progress progress;
  progress.show(peer.name + ": starting " + std::to_string(session.site().ranks) + " processes");
  std::vector<Row> rows;
  Status status = session.begin(peer);
  for (std::size_t i = 0; status && i < all.size(); ++i) {
    const Question question = question_to(peer, all[i], options);
    const auto row = session.ask(question, [&](int done) {
      progress.show(peer.name + ": " + std::to_string(question.bytes) + " bytes, " +
                    std::to_string(done) + " of " +
                    std::to_string(question.warmup + question.iters));
    });
    status = row.status();
    if (!row) break;
    findings.failed |= row->wrong > 0 || row->off_wire;
    if (question.is_relaxed) {
      if (question.is_background) {
        std::printf("# Results are not checked: rounds in the background bring the rest later.\n");
      }
      findings.failed |= !show_mode(session, options, *row);
    }
    rows.push_back(*row);
  }
  session.end();
  progress.show("");
  const std::string work = session.said("sparse work: ");
  if (!work.empty()) std::printf("# %s\n", work.c_str());
  if (status) return rows;
  std::fprintf(stderr, "riffle bench: %s\n", status.message().c_str());
  findings.failed |= peer.missing.empty();
  return rows;
}

}  // namespace

void run_title(Session& session, const std::vector<Peer>& peers, const std::vector<Question>& all,
               const BenchOptions& options, BenchFindings& findings) {
  std::vector<std::optional<Row>> best(all.size());
  for (const Peer& peer : peers) {
    auto& measured = findings.measured;
    if (!measured.contains(peer.name)) {
      measured[peer.name] = measure_peer(session, peer, all, options, findings);
    }
    for (std::size_t i = 0; i < measured[peer.name].size(); ++i) {
      const Row& row = measured[peer.name][i];
      if (!best[i] || row.time_us < best[i]->time_us) best[i] = row;
    }
  }
  for (auto& row : best) {
    if (!row) continue;
    row->peer = peers.front().title;
    std::fputs(table_line(*row).c_str(), stdout);
    findings.rows.push_back(*row);
  }
  std::fflush(stdout);
}

void show_probe(const Session& session) {
  std::ifstream log(session.site().folder + "/riffle.log");
  for (std::string line; std::getline(log, line);) {
    const std::size_t at = line.find("prob");
    if (at != std::string::npos && line.find("network") != std::string::npos) {
      std::printf("# %s\n", line.c_str());
    }
  }
}

}  // namespace riffle::tools
