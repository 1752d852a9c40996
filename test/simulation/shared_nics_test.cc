// Communicators that share NICs, in virtual time: two of them and a ring of NET, at random on all
// machines or on some. Every machine is a rack of the simulated network whose uplink is its NIC.
// On an even network none of them changes its plan, and no node counts as too slow.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lab/simulation/dry_calls.h"
#include "lab/simulation/link_rates.h"
#include "lab/simulation/sim_background.h"
#include "plugin/collective/adapt/slow_nodes.h"
#include "plugin/collective/session.h"
#include "plugin/transport/base/mesh.h"
#include "plugin/transport/sim/sim_network.h"
#include "topology/plan/planner.h"

namespace riffle::sim::shared_nics_test {
namespace {

constexpr std::int64_t kRate = 400'000;
constexpr int kParties = 3;  // two communicators and NET
constexpr int kNet = 2;

Fabric machines_of_parties(int machines) {
  Fabric fabric = even_fabric(kParties * machines, 20 * kRate);
  fabric.racks.assign(static_cast<std::size_t>(machines), RackLink{"", kRate, kRate});
  for (int n = 0; n < fabric.size(); ++n) fabric.nodes[n].rack = n % machines;
  return fabric;
}

struct World {
  World(int machines, std::uint64_t seed, bool has_account)
      : machines(machines),
        has_account(has_account),
        network(machines_of_parties(machines),
                {.seed = seed, .tick_ns = 20'000, .early_headers = false}) {
    network.carry_only([](const FrameHeader& header) {
      return header.type != FrameType::kData && header.type != FrameType::kMessage;
    });
  }
  int node(int party, int machine) const { return party * machines + machine; }
  // Over a machine's NIC, but for this party.
  NicBytes others(int party, int machine) {
    NicBytes sum;
    if (!has_account) return sum;
    for (int other = 0; other < kParties; ++other) {
      for (int peer = 0; peer < machines && other != party; ++peer) {
        const LinkActivity a = network.activity(node(other, machine), node(other, peer));
        sum.out += a.out_bytes;
        sum.in += a.in_bytes;
      }
    }
    return sum;
  }

  const int machines;
  const bool has_account;
  SimNetwork network;
};

// The first `size` nodes of one party as a mesh of their own.
class PartyMesh final : public Mesh, public FrameSink {
 public:
  PartyMesh(World* world, int party, int rank, int size)
      : world_(world),
        whole_(world->network.mesh(world->node(party, rank))),
        party_(party),
        rank_(rank),
        size_(size) {
    world->network.set_sink(world->node(party, rank), this);
  }
  FrameSink* sink = nullptr;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void open(int peer) override { whole_.open(node(peer)); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    whole_.send(node(peer), header, payload, cookie, priority);
  }
  LinkActivity activity(int peer) override { return whole_.activity(node(peer)); }
  NicBytes others_on_nics() override { return world_->others(party_, rank_); }
  void hint(int peer, RateHints hints) override { whole_.hint(node(peer), hints); }
  void dismiss(int peer) override { whole_.dismiss(node(peer)); }
  std::uint64_t now_ns() const override { return whole_.now_ns(); }
  void abort() override { whole_.abort(); }

 private:
  int node(int peer) const { return world_->node(party_, peer); }
  int peer_of(int node) const { return node - world_->node(party_, 0); }
  void opened(int peer) override { sink->opened(peer_of(peer)); }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    return sink->get_receive_buffer(peer_of(peer), header);
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
    sink->arrived(peer_of(peer), header, payload);
  }
  void sent(int peer, std::uint64_t cookie) override { sink->sent(peer_of(peer), cookie); }
  void departed(int peer) override { sink->departed(peer_of(peer)); }
  void lost(int peer, const Status& why) override { sink->lost(peer_of(peer), why); }

  World* const world_;
  Mesh& whole_;
  const int party_, rank_, size_;
};

class Communicator final : private ReplanObserver {
 public:
  Communicator(World* world, int party, int size)
      : world_(world), fabric_(link_rates(even_fabric(size, kRate))), slow_(7 * kRate / 10, size) {
    for (int r = 0; r < size; ++r) nodes_.emplace_back(this, party, r, size);
    for (Node& node : nodes_) node.session.start(&node.mesh, report_of(node.mesh.rank()));
  }
  ~Communicator() override {
    for (Node& node : nodes_) {
      (void)node.session.end();
      node.background.stop();
    }
  }
  bool is_connected() const { return connected_ == nodes_.size(); }
  void begin(std::uint64_t bytes) {
    ++begun_;
    for (Node& node : nodes_) node.calls.begin(bytes);
  }
  bool is_finished() const {
    return std::ranges::all_of(nodes_, [](const Node& node) { return node.calls.is_finished(); });
  }
  std::string failure;
  std::vector<std::string> changes;  // why
  int reports = 0, slow_nodes = 0;

 private:
  struct Node final : FrameSink {
    Node(Communicator* owner, int party, int rank, int size)
        : mesh(owner->world_, party, rank, size),
          background(&owner->world_->network, owner->world_->node(party, rank),
                     [] { return 20'000'000; }),
          session(rank, size, owner->options(&background),
                  &owner->world_->network.timers(owner->world_->node(party, rank)),
                  owner->hooks(rank)),
          calls(1 << 20, 8, [this](Operation* operation) { session.submit(operation); }) {
      mesh.sink = this;
    }
    void opened(int peer) override { session.sink()->opened(peer); }
    Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
      return session.sink()->get_receive_buffer(peer, header);
    }
    void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
      session.sink()->arrived(peer, header, payload);
      calls.progress();
    }
    void sent(int peer, std::uint64_t cookie) override {
      session.sink()->sent(peer, cookie);
      calls.progress();
    }
    void departed(int peer) override { session.sink()->departed(peer); }
    void lost(int peer, const Status& why) override { session.sink()->lost(peer, why); }

    PartyMesh mesh;
    SimBackground background;
    Session session;
    DryCalls calls;
  };

  static NodeReport report_of(int rank) {
    NodeReport report;
    report.rank = rank;
    report.host = "host" + std::to_string(rank);
    return report;
  }
  static SessionOptions options(Background* background) {
    SessionOptions options;
    options.engine.has_blocks = false;
    options.replan.collectives = 4;
    options.background = background;
    return options;
  }
  SessionHooks hooks(int rank) {
    SessionHooks hooks;
    hooks.decide = [this](const std::vector<NodeReport>&) {
      const PlanSet plans = plan(fabric_, 32 << 20, {})->plans;
      Verdict verdict;
      verdict.plans = encode(plans);
      verdict.digest = digest(plans);
      return verdict;
    };
    hooks.basis = [this] { return PlanBasis{fabric_, false}; };
    hooks.replan.count = [this] { return begun_; };
    hooks.replan.observer = rank == 0 ? this : nullptr;
    hooks.connected = [this](const Status& s, const std::string&) { connected_ += s.is_ok(); };
    hooks.failed = [this](const std::string& why) { failure = why; };
    return hooks;
  }
  void on_replan(const ReplanEvent& event) override {
    if (event.kind == ReplanEvent::Kind::kPlanChange) changes.push_back(event.cause);
    if (event.kind != ReplanEvent::Kind::kReport) return;
    ++reports;
    slow_nodes += static_cast<int>(slow_.update(event.fabric, event.reports).size());
  }

  World* const world_;
  const Fabric fabric_;
  SlowNodes slow_;  // as RIFFLE_MIN_RATE of 70 % of the NIC
  std::size_t connected_ = 0;
  std::uint64_t begun_ = 0;
  std::deque<Node> nodes_;
};

// NET between neighbours: two messages under way, in times of random length, with pauses.
class NetRing {
 public:
  NetRing(World* world, int size, std::uint64_t seed) : world_(world), random_(seed) {
    for (int r = 0; r < size; ++r) nodes_.emplace_back(world, r, size);
    toggle();
  }

 private:
  struct Node final : FrameSink {
    Node(World* world, int rank, int size) : mesh(world, kNet, rank, size) {
      mesh.sink = this;
      mesh.open((rank + 1) % size);
      mesh.open((rank + size - 1) % size);
    }
    void run() {
      while (is_open && is_on && under_way < 2) {
        ++under_way;
        FrameHeader header;
        header.type = FrameType::kMessage;
        header.length = static_cast<std::uint32_t>(room.size());
        mesh.send((mesh.rank() + 1) % mesh.size(), header, room, 0, 1);
      }
    }
    void opened(int peer) override {
      is_open |= peer == (mesh.rank() + 1) % mesh.size();
      run();
    }
    Result<std::byte*> get_receive_buffer(int, const FrameHeader&) override { return room.data(); }
    void arrived(int, const FrameHeader&, std::byte*) override {}
    void sent(int, std::uint64_t) override {
      --under_way;
      run();
    }
    void departed(int) override {}
    void lost(int, const Status&) override {}
    PartyMesh mesh;
    std::vector<std::byte> room = std::vector<std::byte>(256 << 10);
    bool is_on = false, is_open = false;
    int under_way = 0;
  };
  void toggle() {
    for (Node& node : nodes_) {
      node.is_on = !node.is_on;
      node.run();
    }
    const std::uint64_t length_ns = 20'000'000 + random_() % 1'500'000'000;
    world_->network.at(world_->network.now_ns() + length_ns, [this] { toggle(); });
  }

  World* const world_;
  std::mt19937_64 random_;
  std::deque<Node> nodes_;
};

struct Outcome {
  std::vector<std::string> changes;
  int reports = 0, slow_nodes = 0;
};

// `slow`: this machine's NIC loses three quarters of its rate.
Outcome run(std::uint64_t seed, bool has_account, int all_reduces, int slow = -1) {
  std::mt19937_64 random(seed);
  const int machines = 4 + static_cast<int>(random() % 5);
  const auto some = [&] { return 2 + static_cast<int>(random() % (machines - 1)); };
  World world(machines, seed, has_account);
  Communicator a(&world, 0, machines), b(&world, 1, random() % 2 == 0 ? machines : some());
  const NetRing net(&world, random() % 2 == 0 ? machines : some(), seed);
  const bool is_b_busy = seed % 3 != 0;
  const std::uint64_t bytes = (2u << 20) << random() % 2;
  if (slow >= 0) world.network.set_rack_rate(slow, kRate / 4, kRate / 4);
  bool waits = false;
  for (int done = -1; done < all_reduces;) {
    if (!world.network.step() || !a.failure.empty() || !b.failure.empty()) {
      ADD_FAILURE() << "seed " << seed << ": " << a.failure << b.failure;
      break;
    }
    if (!a.is_connected() || !b.is_connected()) continue;
    if (a.is_finished()) {
      ++done;
      a.begin(bytes);
    }
    if (is_b_busy && !waits && b.is_finished()) {
      waits = true;
      const std::uint64_t pause_ns = random() % 4 == 0 ? random() % 400'000'000 : 1;
      world.network.at(world.network.now_ns() + pause_ns, [&] {
        waits = false;
        b.begin((1u << 20) + random() % (8u << 20) / 4 * 4);
      });
    }
  }
  Outcome outcome{a.changes, a.reports + b.reports, a.slow_nodes + b.slow_nodes};
  outcome.changes.insert(outcome.changes.end(), b.changes.begin(), b.changes.end());
  return outcome;
}

TEST(SharedNics, NoPlanChangesAndNoNodeIsTooSlowOnAnEvenNetwork) {
  int changes_without = 0, slow_without = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = run(seed, true, 200);
    EXPECT_GE(outcome.reports, 40) << "seed " << seed;
    EXPECT_EQ(outcome.slow_nodes, 0) << "seed " << seed;
    for (const std::string& cause : outcome.changes)
      ADD_FAILURE() << "seed " << seed << ": " << cause;
    if (seed > 5) continue;
    const Outcome without = run(seed, false, 200);
    changes_without += static_cast<int>(without.changes.size());
    slow_without += without.slow_nodes;
  }
  std::printf("without the account, in 5 of the runs: %d changes, %d slow nodes\n", changes_without,
              slow_without);
  EXPECT_GT(changes_without, 0) << "these runs show nothing";
  EXPECT_GT(slow_without, 0) << "these runs show nothing";
}

TEST(SharedNics, ASlowNicIsFoundAllTheSame) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Outcome outcome = run(seed, true, 60, 0);
    EXPECT_FALSE(outcome.changes.empty()) << "seed " << seed;
    for (const std::string& cause : outcome.changes) {
      EXPECT_NE(cause.find("node 0 "), std::string::npos) << "seed " << seed << ": " << cause;
    }
  }
}

}  // namespace
}  // namespace riffle::sim::shared_nics_test
