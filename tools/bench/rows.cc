#include "tools/bench/rows.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>

#include "bench/harness/report.h"
#include "plugin/entry/sync_settings.h"

namespace riffle::tools {

using bench::Peer;
using bench::Question;
using bench::Row;
using bench::Session;

bool show_mode(const Session& session, const BenchOptions& options) {
  const std::string mode = session.mode();
  if (!mode.empty()) {
    std::printf("# %s\n", mode.c_str());
    return true;
  }
  const std::string why = session.said("sparse does not begin");
  const bool is_choice = sparse_wish(options.sparse).is_auto && !why.empty();
  std::printf("# %s\n", is_choice ? why.c_str() : "the relaxed mode did not begin");
  return is_choice;
}

namespace {

// What a result was made of. A sum that stayed dense has no density.
void show_density(const Session& session, Row& row) {
  if (!row.question.is_sparse || session.mode().empty()) {
    row.question.density = 0;
    return;
  }
  std::printf("# %.3g %% of the elements of a result are not zero\n", 100 * row.not_zero);
}

// Of rivals under one title, one that takes this many times the best one's time is out of it.
constexpr double kHopeless = 2;

// One that is out of it after its first all-reduce is not measured further: its row is of that one.
Result<Row> ask(Session& session, const Question& question, const std::optional<Row>& best,
                const std::function<void(int)>& progress) {
  if (best) {
    Question first = question;
    first.iters = 1;
    first.warmup = 0;
    auto row = session.ask(first, progress);
    if (!row || row->time_us > kHopeless * best->time_us) return row;
  }
  return session.ask(question, progress);
}

using BestRows = std::vector<std::optional<Row>>;

// Of each size in order; fewer where the peer fails.
std::vector<Row> measure_peer(Session& session, const Peer& peer, const std::vector<Question>& all,
                              const BestRows& best, const BenchOptions& options,
                              BenchFindings& findings) {
  const Progress progress;
  progress.show(peer.name + ": starting " + std::to_string(session.site().ranks) + " processes");
  std::vector<Row> rows;
  Status status = session.begin(peer);
  for (std::size_t i = 0; status && i < all.size(); ++i) {
    const Question question = question_to(peer, all[i], options);
    auto row = ask(session, question, best[i], [&](int done) {
      progress.show(peer.name + ": " + std::to_string(question.bytes) + " bytes, " +
                    std::to_string(done) + " of " +
                    std::to_string(question.warmup + question.iters));
    });
    status = row.status();
    if (!row) break;
    if (question.is_relaxed) {
      if (question.is_background) {
        std::printf("# Results are not checked: rounds in the background bring the rest later.\n");
      }
      findings.failed |= !show_mode(session, options);
      show_density(session, *row);
    }
    findings.failed |= row->wrong > 0 || row->off_wire || row->is_density_wrong();
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

// What competes under two titles runs once, unless it was out of the first one's race early.
std::vector<Row> measure_once(Session& session, const Peer& peer, const std::vector<Question>& all,
                              const BestRows& best, const BenchOptions& options,
                              BenchFindings& findings) {
  if (const auto known = findings.measured.find(peer.name); known != findings.measured.end()) {
    return known->second;
  }
  const auto rows = measure_peer(session, peer, all, best, options, findings);
  const bool is_whole = std::ranges::all_of(
      rows, [&](const Row& row) { return row.question.iters == all.front().iters; });
  if (is_whole) findings.measured[peer.name] = rows;
  return rows;
}

}  // namespace

void run_title(Session& session, const std::vector<Peer>& peers, const std::vector<Question>& all,
               const BenchOptions& options, BenchFindings& findings) {
  BestRows best(all.size());
  for (const Peer& peer : peers) {
    const auto rows = measure_once(session, peer, all, best, options, findings);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!best[i] || rows[i].time_us < best[i]->time_us) best[i] = rows[i];
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
