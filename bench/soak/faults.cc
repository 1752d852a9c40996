#include "bench/soak/faults.h"

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>

#include "bench/soak/worker.h"
#include "topology/base/status.h"

namespace riffle::bench::soak {
namespace {

constexpr int kCommandMs = 5000;
constexpr int kConnectMs = 90'000;
constexpr int kSlower = 4;  // times

void sleep_ms(int ms) {
  timespec t = {ms / 1000, ms % 1000 * 1'000'000L};
  while (nanosleep(&t, &t) != 0) {
  }
}

class Injector {
 public:
  Injector(const Job& job, const cluster::Cluster& cluster, const std::vector<pid_t>& pids,
           Board& board)
      : job_(job), cluster_(cluster), pids_(pids), board_(board) {}

  void run() {
    const auto nodes = static_cast<int>(pids_.size());
    // A job that ends with its loss is to have had a sum before.
    for (int ms = 0; board_.connected < nodes || board_.sums == 0; ms += 20) {
      if (board_.is_over || ms > kConnectMs) return;
      sleep_ms(20);
    }
    for (const Fault& f : job_.faults) {
      sleep_ms(f.after_ms);
      if (f.is_loss) expect_loss(f.node);
      begin(f);
      sleep_ms(f.for_ms);
      end(f);
    }
    sleep_ms(job_.calm_ms);
  }

 private:
  pid_t pid(const Fault& f) const { return pids_[static_cast<std::size_t>(f.node)]; }

  void expect_loss(int node) {
    board_.lost_since_ms = now_ms();
    board_.may_end = job_.goes_on ? bit_of(node) : bit_of(static_cast<int>(pids_.size())) - 1;
    board_.may_be_left_out = job_.goes_on ? bit_of(node) : 0;
  }
  void begin(const Fault& f) {
    switch (f.kind) {
      case Fault::Kind::kKill:
        kill(pid(f), SIGKILL);
        return;
      case Fault::Kind::kStop:
        kill(pid(f), SIGSTOP);
        return;
      case Fault::Kind::kCut:
        return command(f.node, {"ip", "link", "set", "eth0", "down"});
      case Fault::Kind::kSlow:
        return set_rate(f.node, kSlower);
    }
  }
  void end(const Fault& f) {
    if (f.kind == Fault::Kind::kStop) kill(pid(f), SIGCONT);
    if (f.kind == Fault::Kind::kCut) command(f.node, {"ip", "link", "set", "eth0", "up"});
    if (f.kind == Fault::Kind::kSlow) set_rate(f.node, 1);
  }

  // What the node sends; as link.h has it, but for the queue.
  void set_rate(int node, int part) {
    const cluster::Profile& profile = cluster_.profile();
    const std::int64_t kbps = profile.rates[static_cast<std::size_t>(node)].out_kbps;
    if (kbps == 0 || profile.shaping.shaper != cluster::Shaper::kTbf) return;
    command(node, {"tc", "qdisc", "change", "dev", "eth0", "root", "tbf", "rate",
                   std::to_string(kbps / part) + "kbit", "burst",
                   std::to_string(profile.shaping.burst_bytes), "limit", "1500000"});
  }
  void command(int node, const std::vector<std::string>& argv) {
    const auto done = cluster_.run(node, argv, kCommandMs);
    if (!done) find(board_, node, "the soak itself: " + done.status().message());
  }

  const Job& job_;
  const cluster::Cluster& cluster_;
  const std::vector<pid_t>& pids_;
  Board& board_;
};

}  // namespace

void inject(const Job& job, const cluster::Cluster& cluster, const std::vector<pid_t>& pids,
            Board& board) {
  Injector(job, cluster, pids, board).run();
  board.is_over = true;
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace riffle::bench::soak
