// Faults and neighbours: what a profile does to the peers in mid-job.
#include <fstream>

#include "bench/harness/contention.h"
#include "tools/bench/rows.h"

namespace riffle::tools {

using bench::Peer;
using bench::Question;
using bench::Session;

Status run_losses(Session& session, const std::vector<Peer>& peers, const Question& question,
                  bool goes_on) {
  for (const Peer& peer : peers) {
    if (peer.name != "riffle" && peer.name != "nccl-ring") continue;  // the others just abort
    const bool survives = goes_on && peer.name == "riffle";
    for (const std::string& kind : session.profile().fault.kinds) {
      if (Status s = session.begin(peer); !s) return s;
      const auto loss = session.lose(question, kind, survives);
      session.end();
      if (!loss) return loss.status();
      if (survives) {
        std::printf(
            "# %s: node %d %s in mid-collective: %d of %d survivors have the result, the last "
            "after "
            "%.2f s (RIFFLE_PEER_TIMEOUT=%d); the next all-reduce takes %.2f s; %zu wrong "
            "elements\n",
            peer.name.c_str(), session.profile().fault.node, kind == "kill" ? "killed" : "stopped",
            loss->with_result, loss->survivors, loss->last_result_s, session.site().peer_timeout_s,
            loss->next_s, loss->wrong);
        std::fflush(stdout);
        if (loss->with_result != loss->survivors) {
          return remote_error("some survivor did not go on: " + loss->first_message);
        }
        if (loss->wrong > 0) return remote_error("wrong elements after a loss");
        continue;
      }
      std::printf(
          "# %s: node %d %s in mid-collective: %d of %d survivors had an error, the last "
          "after %.2f s (RIFFLE_PEER_TIMEOUT=%d)\n#   %s\n",
          peer.name.c_str(), session.profile().fault.node, kind == "kill" ? "killed" : "stopped",
          loss->with_error, loss->survivors, loss->last_error_s, session.site().peer_timeout_s,
          loss->first_message.c_str());
      std::fflush(stdout);
      if (loss->with_error != loss->survivors) return remote_error("some survivor had no error");
    }
  }
  return Status::ok();
}

Status run_contention(Session& session, const std::vector<Peer>& peers, const Question& question,
                      const BenchOptions& options, BenchFindings& findings) {
  const Progress progress;
  std::vector<bench::Series> all;
  for (const Peer& peer : peers) {
    if (Status s = session.begin(peer); !s) return s;
    const Question asked = question_to(peer, question, options);
    const auto series = bench::contend(session, asked, options.contention(), [&](int done) {
      progress.show(peer.name + ": " + std::to_string(done) + " all-reduces");
    });
    session.end();
    progress.show("");
    if (!series) return series.status();
    all.push_back(*series);
    all.back().peer = peer.name;
    if (asked.is_relaxed) {
      findings.failed |= !show_mode(session, options);
      all.back().mode = session.mode();
    }
    for (const bench::Moment& m : all.back().moments) findings.failed |= m.wrong > 0;
    std::fputs(bench::contention_table(all.back(), options.contention()).c_str(), stdout);
    std::fflush(stdout);
  }
  if (options.json.empty()) return Status::ok();
  std::ofstream file(options.json);
  file << bench::to_json(all);
  return file.flush() ? Status::ok() : system_error("cannot write " + options.json);
}

}  // namespace riffle::tools
