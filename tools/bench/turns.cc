#include "bench/harness/turns.h"

#include <memory>

#include "tools/bench/rows.h"

namespace riffle::tools {

using bench::Contender;
using bench::Question;
using bench::Session;

namespace {

constexpr int kIters = 2;
// One takes next to no time, and the machine disturbs it the more.
constexpr std::size_t kSmallBytes = 1 << 20;
constexpr int kSmallIters = 20;

}  // namespace

Status check_turns(const BenchOptions& options, const cluster::Profile& profile) {
  const bool are_plugins = options.plugins.size() > 1;
  const std::string asked = are_plugins ? "--plugin given several times" : "--in-turns";
  if (are_plugins && options.in_turns) {
    return invalid_argument("--in-turns and several --plugin: one of the two");
  }
  if (!are_plugins && options.peers.empty()) return invalid_argument("--in-turns takes --peers");
  for (const auto& [is_set, option] : {std::pair{are_plugins && !options.peers.empty(), "--peers"},
                                       {!options.sparse_peers.empty(), "--sparse-peers"},
                                       {options.sync != "exact", "--sync"},
                                       {options.is_sparse(), "--sparse"},
                                       {options.is_narrow(), "--wire"},
                                       {!options.record.empty(), "--record"}}) {
    if (is_set) return invalid_argument(asked + " takes no " + option);
  }
  if (profile.fault.node < 0 && profile.neighbour.node < 0) return Status::ok();
  return invalid_argument(
      asked + ": profile " + profile.name +
      " has a fault or a neighbour, and only profiles without are measured in turns");
}

namespace {

// One round of all questions; the processes of all contenders start anew for it.
Status run_round(int round, const std::vector<Contender>& contenders,
                 const std::vector<std::unique_ptr<Session>>& sessions,
                 const std::vector<Question>& all, const BenchOptions& options,
                 const Progress& progress, BenchFindings& findings) {
  const std::string name =
      "round " + std::to_string(round + 1) + " of " + std::to_string(options.rounds);
  for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
    const std::size_t who = (turn + static_cast<std::size_t>(round)) % contenders.size();
    const Contender& contender = contenders[who];
    progress.show(name + ": starting " + contender.name);
    const auto peer = contender.rival ? *contender.rival
                                      : bench::riffle_peer(contender.name, contender.environment);
    if (Status s = sessions[who]->begin(peer); !s) return s;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    Question question = all[i];
    if (!options.has_iters) question.iters = question.bytes < kSmallBytes ? kSmallIters : kIters;
    progress.show(name + ": " + std::to_string(question.bytes) + " bytes");
    if (Status s = measure_round(sessions, question, findings.turns[i]); !s) return s;
  }
  return Status::ok();
}

}  // namespace

Status run_turns(const Session& session, const std::vector<Contender>& contenders,
                 const std::vector<Question>& all, const BenchOptions& options,
                 BenchFindings& findings) {
  const Progress progress;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<bench::TurnsRow> unmeasured;
  for (const Contender& contender : contenders) {
    auto beside = session.open_beside(contender.file);
    if (!beside) return beside.status();
    sessions.push_back(std::move(*beside));
    unmeasured.push_back({contender, {}});
  }
  findings.turns.assign(all.size(), unmeasured);
  Status status;
  int whole = 0;  // rounds
  while (status && whole < options.rounds) {
    status = run_round(whole, contenders, sessions, all, options, progress, findings);
    for (const auto& running : sessions) running->end();
    if (status) ++whole;
  }
  progress.show("");
  // What the rounds before one that failed took is worth having: they may be an hour's.
  for (auto& rows : findings.turns) {
    for (bench::TurnsRow& row : rows) row.rounds.resize(static_cast<std::size_t>(whole));
  }
  if (whole == 0) findings.turns.clear();
  for (const auto& rows : findings.turns) {
    std::fputs(bench::turns_table(rows).c_str(), stdout);
    for (const bench::TurnsRow& row : rows) {
      const bench::Row all_rounds = over_all(row);
      findings.failed |= all_rounds.wrong > 0 || all_rounds.off_wire;
    }
  }
  std::fflush(stdout);
  return status;
}

}  // namespace riffle::tools
