#include "bench/soak/findings.h"

#include "topology/base/printed.h"

namespace riffle::bench::soak {
namespace {

constexpr int kNoticeMs = 4000;  // beyond the peer timeout, on a busy machine

class Search {
 public:
  Search(const Job& job, const Board& board, int nodes)
      : job_(job),
        board_(board),
        nodes_(nodes),
        loss_(job.faults.empty() || !job.faults.back().is_loss ? nullptr : &job.faults.back()) {}

  std::vector<std::string> run(const std::vector<host::RankExit>& exits) {
    if (board_.connected < nodes_) {
      all_.push_back("only " + std::to_string(board_.connected) + " nodes connected");
    } else if (board_.sums == 0) {
      all_.push_back("there was no sum");
    }
    for (int n = 0; n < nodes_; ++n) {
      const host::RankExit& exit = exits[static_cast<std::size_t>(n)];
      look_at_exit(n, exit);
      if (board_.nodes[n].has_finding) {
        add(n, board_.nodes[n].finding);
      } else if (loss_ != nullptr && board_.lost_since_ms != 0 && exit.code == 0) {
        look_at_loss(n);
      }
    }
    return all_;
  }

  std::vector<std::string> run_hung(const Status& why) {
    all_.push_back("it hangs: " + why.message());
    for (int n = 0; n < nodes_; ++n) {
      if (board_.nodes[n].has_finding) add(n, board_.nodes[n].finding);
      if (!was_killed(n)) look_at_stage(n);
    }
    return all_;
  }

 private:
  void add(int node, const std::string& what) {
    all_.push_back("node " + std::to_string(node) + ": " + what);
  }
  bool is_lost(int node) const { return loss_ != nullptr && loss_->node == node; }
  bool was_killed(int node) const { return is_lost(node) && loss_->kind == Fault::Kind::kKill; }

  void look_at_exit(int node, const host::RankExit& exit) {
    if (exit.signal != 0 && !was_killed(node)) {
      add(node, "ended by signal " + std::to_string(exit.signal));
    } else if (exit.signal == 0 && exit.code != 0) {
      add(node, "exit code " + std::to_string(exit.code));
    }
  }

  void look_at_stage(int node) {
    using Stage = Board::Stage;
    const Board::Node& own = board_.nodes[node];
    if (own.stage == Stage::kConnects) add(node, "has not connected");
    if (own.stage == Stage::kCloses) add(node, "has not closed its communicators");
    if (own.stage != Stage::kSums) return;
    for (int c = 0; c < job_.communicators; ++c) {
      if (!own.communicators[c].is_running) continue;
      add(node, printed("communicator %d, sum %llu: has not ended", c,
                        static_cast<unsigned long long>(own.communicators[c].sum)));
    }
  }

  // A loss ends all communicators of the lost node, and with RIFFLE_ON_LOSS=error all others as
  // well; else they go on without it. It may have done its part of one sum that they begin later.
  void look_at_loss(int node) {
    for (int c = 0; c < job_.communicators; ++c) {
      const Board::Communicator& own = board_.nodes[node].communicators[c];
      if (is_lost(node) || !job_.goes_on) {
        look_at_end(node, c, own.ended_ms);
      } else if (own.since_loss > 1 && (own.members & bit_of(loss_->node)) != 0) {
        add(node, printed("communicator %d: its last sum has node %d in it, which was lost", c,
                          loss_->node));
      }
    }
  }
  void look_at_end(int node, int communicator, std::int64_t ended_ms) {
    if (ended_ms == 0) {
      return add(node, printed("communicator %d: did not hear of the loss", communicator));
    }
    const std::int64_t took_ms = ended_ms - board_.lost_since_ms;
    if (took_ms <= most_ms(node)) return;
    add(node, printed("communicator %d: heard of the loss after %.1f s", communicator,
                      static_cast<double>(took_ms) / 1000));
  }
  // The lost node itself may have been stopped all the time.
  int most_ms(int node) const {
    const int timeout_ms = loss_->kind == Fault::Kind::kKill ? 0 : 1000 * kPeerTimeoutS;
    return timeout_ms + kNoticeMs + (is_lost(node) ? loss_->for_ms : 0);
  }

  const Job& job_;
  const Board& board_;
  const int nodes_;
  const Fault* const loss_;  // null: none
  std::vector<std::string> all_;
};

}  // namespace

std::vector<std::string> findings_of(const Job& job, const Board& board, int nodes,
                                     const Result<std::vector<host::RankExit>>& exits) {
  Search search(job, board, nodes);
  return exits ? search.run(*exits) : search.run_hung(exits.status());
}

}  // namespace riffle::bench::soak
