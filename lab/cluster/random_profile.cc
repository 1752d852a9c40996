#include "lab/cluster/random_profile.h"

#include <algorithm>
#include <initializer_list>
#include <random>

namespace riffle::cluster {
namespace {

constexpr std::int64_t kMbps = 1000;
constexpr std::int64_t kLeastUplinkMbps = 50;

class Network {
 public:
  explicit Network(std::uint64_t seed) : random_(seed) {
    p_.name = "random:" + std::to_string(seed);
  }

  Profile draw() {
    draw_rates();
    draw_racks();
    draw_uplinks();
    draw_shaping();
    if (one_in(3)) draw_flows();
    describe();
    return std::move(p_);
  }

 private:
  using Index = std::size_t;

  // least..most
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(std::int64_t n) { return number(1, n) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[number(0, static_cast<std::int64_t>(values.size()) - 1)];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (Index i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[static_cast<Index>(number(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }

  void draw_rates() {
    const auto nodes = static_cast<Index>(number(4, 14));
    std::vector<std::int64_t> mbps = {400, 300, 250, 200, 150, 100};
    shuffle(mbps);
    std::vector<Rates> classes;
    const bool directions_differ = one_in(5);
    for (std::int64_t i = number(1, 4); i > 0; --i) {
      const std::int64_t out = mbps[static_cast<Index>(i)] * kMbps;
      const std::int64_t halves = directions_differ ? one_of({1, 2, 2}) : 2;
      classes.push_back(one_in(2) ? Rates{out * halves / 2, out} : Rates{out, out * halves / 2});
    }
    p_.cpu_percent.assign(nodes, 0);
    p_.rates.assign(nodes, classes[0]);
    for (Rates& r : p_.rates) {
      const auto last = static_cast<std::int64_t>(classes.size()) - 1;
      if (one_in(2)) r = classes[static_cast<Index>(number(0, last))];
    }
  }

  void draw_racks() {
    const auto nodes = static_cast<std::int64_t>(p_.rates.size());
    const std::int64_t smallest = one_in(8) ? 1 : 2;
    const std::int64_t racks = number(1, std::min<std::int64_t>(5, nodes / smallest));
    p_.rack_of.clear();
    for (std::int64_t i = 0; i < nodes; ++i) {
      p_.rack_of.push_back(
          static_cast<int>(i < smallest * racks ? i % racks : number(0, racks - 1)));
    }
    if (one_in(3)) {
      for (std::int64_t i = 0; i < nodes; ++i) {
        p_.rack_of[static_cast<Index>(i)] = static_cast<int>(i % racks);
      }
    } else if (one_in(2)) {
      std::ranges::sort(p_.rack_of);
    } else {
      shuffle(p_.rack_of);
    }
    for (std::int64_t k = 0; k < racks; ++k) {
      p_.racks.push_back({"rack" + std::to_string(k), {}});
    }
  }

  // All that is behind an uplink, as a share: 1/2 leaves it half of that.
  Rates narrowed(const Rates& behind, std::int64_t by) {
    const auto narrow = [&](std::int64_t kbps) {
      return std::max(kLeastUplinkMbps, kbps / kMbps / by) * kMbps;
    };
    return {narrow(behind.out_kbps), narrow(behind.in_kbps)};
  }

  Rates behind(int rack) const {
    Rates sum;
    for (Index n = 0; n < p_.rates.size(); ++n) {
      if (p_.rack_of[n] != rack) continue;
      sum.out_kbps += p_.rates[n].out_kbps;
      sum.in_kbps += p_.rates[n].in_kbps;
    }
    return sum;
  }

  std::int64_t oversubscription() { return one_of<std::int64_t>({1, 2, 3, 4, 6}); }

  // Uplinks of racks, alike or each its own; sometimes one of them limits nothing.
  void draw_uplinks() {
    if (p_.racks.size() < 2) return;
    const bool alike = one_in(2);
    const bool directions_differ = one_in(6);
    const std::int64_t by = oversubscription();
    for (Index r = 0; r < p_.racks.size(); ++r) {
      Rates& uplink = p_.racks[r].uplink;
      uplink = narrowed(behind(static_cast<int>(r)), alike ? by : oversubscription());
      if (directions_differ) uplink = {uplink.out_kbps, narrowed(uplink, 2).in_kbps};
      if (!alike && one_in(8)) uplink = {};
    }
    if (p_.racks.size() >= 3 && one_in(2)) draw_pods();
  }

  // Two pods. Either their uplinks are narrow and those of their racks are not, or the other way
  // round.
  void draw_pods() {
    const bool narrow_pods = !one_in(3);
    p_.pods = {{"pod0", {}}, {"pod1", {}}};
    for (Index r = 0; r < p_.racks.size(); ++r) {
      // Two racks are in pod 0, one in pod 1.
      const int pod = r < 3 ? static_cast<int>(r / 2) : static_cast<int>(number(0, 1));
      p_.racks[r].pod = pod;
      Rates sum = behind(static_cast<int>(r));
      if (narrow_pods) p_.racks[r].uplink = sum;
      if (!narrow_pods && p_.racks[r].uplink.out_kbps != 0) sum = p_.racks[r].uplink;
      Rates& uplink = p_.pods[static_cast<Index>(pod)].uplink;
      uplink.out_kbps += sum.out_kbps;
      uplink.in_kbps += sum.in_kbps;
    }
    if (!narrow_pods) return;
    for (Pod& pod : p_.pods) pod.uplink = narrowed(pod.uplink, one_of<std::int64_t>({2, 3, 4, 6}));
  }

  void draw_shaping() {
    if (one_in(3)) return plain_shaping(p_);
    if (one_in(5)) return;  // a profile's defaults
    Shaping& s = p_.shaping;
    s.shaper = one_of({Shaper::kTbf, Shaper::kHtb});
    s.burst_bytes = one_of<std::int64_t>({32'000, 72'000, 131'072, 262'144});
    s.gso_max_bytes = one_of<std::int64_t>({0, 16'384, 32'768, 65'536});
    switch (number(1, 3)) {
      case 1:
        s.queue_ms = one_of<std::int64_t>({5, 10, 20, 40, 60, 100});
        break;
      case 2:
        s.queue_bytes = one_of<std::int64_t>({100'000, 250'000, 500'000, 2'000'000});
        break;
      default:
        break;
    }
    // Rare: most flows that meet in one starve for a while, whatever sends them.
    if (one_in(8)) s = {Shaper::kPolicer, 0, 0, one_of<std::int64_t>({524'288, 1'048'576}), 0};
    p_.packet_filter = one_in(2);
    p_.equal_host_names = one_in(2);
  }

  // Each takes a tenth to a third of what is left of the narrowest link on its way.
  void draw_flows() {
    Profile left = p_;
    for (std::int64_t i = number(1, 3); i > 0; --i) {
      const std::int64_t nodes = p_.size();
      BackgroundFlow flow;
      flow.from = static_cast<int>(number(0, nodes - 1));
      flow.to = static_cast<int>((flow.from + number(1, nodes - 1)) % nodes);
      std::int64_t least = 400 * kMbps;
      for_each_link(left, flow, [&](std::int64_t& kbps) {
        if (kbps != 0) least = std::min(least, kbps);
      });
      flow.rate_kbps = std::max<std::int64_t>(1, least / kMbps / number(3, 10)) * kMbps;
      for_each_link(left, flow, [&](std::int64_t& kbps) {
        if (kbps != 0) kbps -= flow.rate_kbps;
      });
      if (one_in(2)) {
        flow.on_ms = static_cast<int>(number(2, 20) * 100);
        flow.off_ms = static_cast<int>(number(2, 20) * 100);
      }
      p_.flows.push_back(flow);
    }
  }

  void describe() {
    const auto count = [](Index n, const char* what) {
      return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
    };
    p_.about = "drawn: " + count(p_.rates.size(), "node") + ", " + count(p_.racks.size(), "rack");
    if (!p_.pods.empty()) p_.about += ", " + count(p_.pods.size(), "pod");
    if (!p_.flows.empty()) p_.about += ", " + count(p_.flows.size(), "background flow");
  }

  std::mt19937_64 random_;
  Profile p_;
};

}  // namespace

Profile random_profile(std::uint64_t seed) { return Network(seed).draw(); }

void plain_shaping(Profile& profile) {
  profile.shaping = {Shaper::kTbf, 60, 0, 131'072, 65'536};
  profile.packet_filter = true;
  profile.equal_host_names = true;
}

}  // namespace riffle::cluster
