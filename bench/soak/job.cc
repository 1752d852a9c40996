#include "bench/soak/job.h"

#include <array>

#include "topology/base/printed.h"
#include "topology/base/seeded_random.h"

namespace riffle::bench::soak {
namespace {

constexpr std::array kNetworks = {"uniform8", "racks8", "straggler8", "racks4", "slow8"};
constexpr int kLeastNodes = 4;  // every network has them
constexpr int kTimeoutMs = 1000 * kPeerTimeoutS;

template <class List>
auto any(SeededRandom& random, const List& list) {
  return list[random.below(list.size())];
}

int between(SeededRandom& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::size_t>(most - least + 1)));
}

Fault draw_fault(SeededRandom& random, bool is_loss) {
  using Kind = Fault::Kind;
  Fault f;
  f.is_loss = is_loss;
  f.kind = is_loss ? any(random, std::array{Kind::kKill, Kind::kKill, Kind::kStop, Kind::kCut})
                   : any(random, std::array{Kind::kStop, Kind::kCut, Kind::kSlow});
  f.node = between(random, 0, kLeastNodes - 1);
  f.after_ms = between(random, 200, 4000);
  // Clearly shorter, or longer, than the peer timeout; what is slow stays within it.
  if (f.kind == Kind::kSlow) {
    f.for_ms = between(random, 2000, 8000);
  } else if (f.kind != Kind::kKill) {
    f.for_ms = is_loss ? between(random, 3 * kTimeoutMs / 2, 2 * kTimeoutMs)
                       : between(random, 50, 2 * kTimeoutMs / 5);
  }
  return f;
}

}  // namespace

Job draw_job(std::uint64_t seed) {
  SeededRandom random(seed);
  Job job;
  job.seed = seed;
  job.network = random.below(3) == 0 ? "random:" + std::to_string(1 + random.below(60))
                                     : any(random, kNetworks);
  job.communicators = between(random, 1, 4);
  job.goes_on = random.below(2) == 0;
  const auto set = [&](const char* name, const auto& values) {
    job.settings.emplace_back(name, any(random, values));
  };
  using Texts = std::vector<const char*>;
  job.settings.emplace_back("RIFFLE_ON_LOSS", job.goes_on ? "continue" : "error");
  job.settings.emplace_back("RIFFLE_PEER_TIMEOUT", std::to_string(kPeerTimeoutS));
  set("RIFFLE_THREADS", Texts{"1", "1", "2"});
  set("RIFFLE_ENCRYPT", Texts{"0", "0", "1"});
  set("RIFFLE_STREAMS", Texts{"0", "1", "3"});
  set("RIFFLE_PROBE", Texts{"on", "off"});
  set("RIFFLE_EPOCH", Texts{"4", "1", "0"});
  set("RIFFLE_PAYLOAD_CRC", Texts{"0", "1"});
  for (int n = between(random, 0, 3); n > 0; --n) job.faults.push_back(draw_fault(random, false));
  if (random.below(2) == 0) job.faults.push_back(draw_fault(random, true));
  job.calm_ms = between(random, 1000, 8000);
  return job;
}

std::string describe(const Job& job) {
  std::string text = job.network + ", " + std::to_string(job.communicators) + " communicators";
  for (const auto& [name, value] : job.settings) text += " " + name.substr(7) + "=" + value;
  static constexpr std::array kKinds = {"killed", "stopped", "cut off", "slowed down"};
  for (const Fault& f : job.faults) {
    text += printed("; node %d %s", f.node, kKinds[static_cast<std::size_t>(f.kind)]);
    if (f.for_ms > 0) text += printed(" for %.1f s", f.for_ms / 1000.0);
  }
  return text;
}

}  // namespace riffle::bench::soak
