// The parts of a bench, one after the other on one session. Tables go to stdout, progress to a
// terminal.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/harness/session.h"
#include "bench/harness/turns.h"
#include "bench/sparse/compare.h"
#include "tools/bench/options.h"

namespace riffle::tools {

// Shown on a terminal only; the table itself goes to stdout.
class Progress {
 public:
  void show(const std::string& text) const {
    if (shown_) std::fprintf(stderr, "\r\033[K%s", text.c_str());
  }

 private:
  bool shown_ = isatty(2);
};

// A row of each size in order; fewer, with the reason, where the peer failed or is not there.
struct MeasuredPeer {
  std::vector<bench::Row> rows;
  std::string failure;
};

struct BenchFindings {
  std::vector<bench::Row> rows;
  std::map<std::string, MeasuredPeer>
      measured;  // by name: what competes under two titles runs once
  std::vector<bench::SparseRow> sparse;
  std::vector<std::vector<bench::TurnsRow>> turns;  // by size
  bool failed = false;
};

// All rows of the peers that compete under one title; the fastest of each size is kept, with what
// the others took. One of them that fails, or is wrong where another is right, is named and left
// out; the bench fails where a size has no right row, and where one that is not external is wrong.
void run_title(bench::Session& session, const std::vector<bench::Peer>& peers,
               const std::vector<bench::Question>& all, const BenchOptions& options,
               BenchFindings& findings);

// Says what mode of --sync, --sparse or --wire the peer that ran last was in. False: in none,
// though riffle was asked for one and did not choose to stay exact (auto).
bool show_mode(const bench::Session& session, const BenchOptions& options);

// Whether several --plugin, or --in-turns, go with the other options.
Status check_turns(const BenchOptions& options, const cluster::Profile& profile);
// The contenders in turns, on the session's cluster.
Status run_turns(const bench::Session& session, const std::vector<bench::Contender>& contenders,
                 const std::vector<bench::Question>& all, const BenchOptions& options,
                 BenchFindings& findings);

// What riffle said of the network when it connected, where no file told it.
void show_probe(const bench::Session& session);

// The profile's fault, to every peer that is not just aborted by it. goes_on: with
// RIFFLE_ON_LOSS=continue, which must hold.
Status run_losses(bench::Session& session, const std::vector<bench::Peer>& peers,
                  const bench::Question& question, bool goes_on);

// All peers while a foreign flow comes and goes.
Status run_contention(bench::Session& session, const std::vector<bench::Peer>& peers,
                      const bench::Question& question, const BenchOptions& options,
                      BenchFindings& findings);

// Whether --sparse-peers can be had: known before the other rows take their time.
Status check_sparse(const BenchOptions& options, const std::vector<bench::Question>& all,
                    const cluster::Profile& profile);
// Sparse schemes beside each other, one table for each size; riffle's own rows are there already.
Status run_sparse(bench::Session& session, const BenchOptions& options,
                  const std::vector<bench::Question>& all, BenchFindings& findings);

}  // namespace riffle::tools
