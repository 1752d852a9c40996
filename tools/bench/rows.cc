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

Result<Row> ask_and_count(Session& session, const Question& question,
                          const std::function<void(int)>& progress) {
  (void)session.count_plan_changes();
  auto row = session.ask(question, [&](int done) {
    if (done == question.warmup) (void)session.count_plan_changes();
    progress(done);
  });
  if (row) row->plan_changes = session.count_plan_changes();
  return row;
}

// Of rivals under one title, one that takes this many times the best one's time is out of it.
constexpr double kHopeless = 2;

// One that is out of it after one all-reduce, warmed up as all are, is not measured further: its
// row is of that one. Libraries that connect in their first call would be out of it for that.
Result<Row> ask(Session& session, const Question& question, const std::optional<Row>& best,
                const std::function<void(int)>& progress) {
  if (best && !best->is_wrong()) {
    Question first = question;
    first.iters = 1;
    auto row = ask_and_count(session, first, progress);
    if (!row || row->is_wrong() || row->time_us > kHopeless * best->time_us) return row;
  }
  return ask_and_count(session, question, progress);
}

using BestRows = std::vector<std::optional<Row>>;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Of each size in order; fewer where the peer fails or is not there, then with the reason.
MeasuredPeer measure_peer(Session& session, const Peer& peer, const std::vector<Question>& all,
                          const BestRows& best, const BenchOptions& options,
                          BenchFindings& findings) {
  const Progress progress;
  progress.show(peer.name + ": starting " + std::to_string(session.site().ranks) + " processes");
  MeasuredPeer measured;
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
    findings.failed |= row->is_wrong() && !peer.is_external;
    measured.rows.push_back(*row);
  }
  session.end();
  progress.show("");
  const std::string work = session.said("sparse work: ");
  if (!work.empty()) std::printf("# %s\n", work.c_str());
  if (status) return measured;
  std::fprintf(stderr, "riffle bench: %s\n", status.message().c_str());
  measured.failure = first_line(status.message());
  return measured;
}

// What competes under two titles runs once, unless it was out of the first one's race early or has
// failed.
MeasuredPeer measure_once(Session& session, const Peer& peer, const std::vector<Question>& all,
                          const BestRows& best, const BenchOptions& options,
                          BenchFindings& findings) {
  if (const auto known = findings.measured.find(peer.name); known != findings.measured.end()) {
    return known->second;
  }
  const auto measured = measure_peer(session, peer, all, best, options, findings);
  const bool is_whole =
      measured.failure.empty() && std::ranges::all_of(measured.rows, [&](auto& row) {
        return row.question.iters == all.front().iters;
      });
  if (is_whole) findings.measured[peer.name] = measured;
  return measured;
}

bench::Rival rival_of(const Peer& peer, const MeasuredPeer& measured, std::size_t size) {
  if (size >= measured.rows.size()) return {peer.name, 0, measured.failure, false, {}};
  const Row& row = measured.rows[size];
  if (row.is_wrong()) return {peer.name, 0, "wrong", true, {}};
  return {peer.name, row.time_us, "", false, row.samples_us};
}

}  // namespace

void run_title(Session& session, const std::vector<Peer>& peers, const std::vector<Question>& all,
               const BenchOptions& options, BenchFindings& findings) {
  BestRows best(all.size());
  std::vector<std::vector<bench::Rival>> rivals(all.size());
  bool is_there = false;  // some of them
  for (const Peer& peer : peers) {
    const auto measured = measure_once(session, peer, all, best, options, findings);
    is_there |= peer.missing.empty();
    if (!measured.failure.empty() && peer.missing.empty()) {
      std::printf("# %s failed: %s\n", peer.name.c_str(), measured.failure.c_str());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      rivals[i].push_back(rival_of(peer, measured, i));
      if (i >= measured.rows.size()) continue;
      if (!best[i] || measured.rows[i].beats(*best[i])) best[i] = measured.rows[i];
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    findings.failed |= is_there && !best[i];
    if (!best[i]) continue;
    findings.failed |= best[i]->is_wrong();
    for (const bench::Rival& rival : rivals[i]) {
      if (!rival.is_wrong || best[i]->is_wrong()) continue;
      std::printf("# %s is wrong at %llu bytes and left out\n", rival.variant.c_str(),
                  static_cast<unsigned long long>(best[i]->question.bytes));
    }
    best[i]->peer = peers.front().title;
    best[i]->rivals = std::move(rivals[i]);
    std::erase_if(best[i]->rivals, [&](const auto& r) { return r.variant == best[i]->variant; });
    std::fputs(table_line(*best[i]).c_str(), stdout);
    findings.rows.push_back(*best[i]);
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
