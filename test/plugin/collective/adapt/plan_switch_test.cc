// Changing the plan by agreement, with collectives in flight, on a network that reorders every
// frame and with preparations that take their time: every sum stays exact, all nodes use the same
// plan from the same chunk, and a node that cannot take the plan stops nothing.
#include "plugin/collective/adapt/plan_switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "lab/memory/memory_network.h"
#include "lab/simulation/random_plans.h"
#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/engine/engine.h"
#include "plugin/transport/base/mesh.h"
#include "test/sanitized.h"

namespace riffle::plan_switch_test {
namespace {

class Node final : public FrameSink {
 public:
  Node(Mesh* mesh, const PlanSet& plans, const EngineOptions& options, std::uint64_t horizon)
      : engine(mesh, options, [this](int, const Status& why) { fail(why); }),
        horizon_(horizon),
        control_(mesh,
                 [this](int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
                   if (const Status s = protocol.received(peer, kind, message); !s) fail(s);
                 }),
        protocol(mesh->rank(), mesh->size(), steps(mesh)) {
    EXPECT_TRUE(engine.install(plans));
  }
  void opened(int) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return is_control(h) ? control_.get_receive_buffer(peer, h)
                         : engine.get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    is_control(h) ? control_.arrived(peer, h, payload) : engine.arrived(peer, h, payload);
  }
  void sent(int peer, std::uint64_t cookie) override {
    if (cookie == kNoCookie) return;
    (cookie & kControlCookie) != 0 ? control_.sent(peer, cookie) : engine.sent(cookie);
  }
  void departed(int) override {}
  void lost(int, const Status& why) override { fail(why); }
  void fail(const Status& why) {
    if (error.is_ok()) error = why;
    engine.fail();
  }
  void finish_preparing() {
    if (!preparing_) return;
    const auto done = std::exchange(preparing_, nullptr);
    done();
  }

  Engine engine;
  Status error;
  bool cannot_prepare = false;
  std::vector<std::uint64_t> switched_at;
  std::vector<Result<std::uint64_t>> outcomes;  // node 0

 private:
  static bool is_control(const FrameHeader& h) { return h.type == FrameType::kControl; }
  PlanSwitch::Steps steps(Mesh* mesh) {
    return {.send =
                [this](int peer, std::uint32_t kind, std::vector<std::uint8_t> m) {
                  control_.send(peer, FrameType::kControl, kind, std::move(m));
                },
            .prepare =
                [this, mesh](const PlanSwitch::Order& order, std::function<void(Status)> prepared) {
                  preparing_ = [this, mesh, order, prepared] {
                    if (cannot_prepare) return prepared(internal_error("no memory"));
                    const auto plans = decode_plan_set(order.plans.data(), order.plans.size());
                    ASSERT_TRUE(plans) << plans.status().message();
                    auto made = Generation::make(*plans, engine.next_generation(), mesh->rank(),
                                                 mesh->size(), engine.options());
                    ASSERT_TRUE(made) << made.status().message();
                    prepared(engine.prepare(std::move(*made)));
                  };
                },
            .hold =
                [this](std::uint64_t) {
                  const std::uint64_t seq = engine.earliest_switch() + horizon_;
                  engine.hold_at(seq);
                  return seq;
                },
            .use =
                [this](std::uint64_t seq) {
                  switched_at.push_back(seq);
                  engine.switch_at(seq);
                },
            .drop = [this] { engine.drop_prepared(); },
            .decided = [this](Result<std::uint64_t> seq) { outcomes.push_back(std::move(seq)); }};
  }

  std::uint64_t horizon_;
  std::function<void()> preparing_;
  ControlChannel control_;

 public:
  PlanSwitch protocol;
};

struct Call {
  std::vector<std::vector<std::int32_t>> data;  // per node, in place
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<std::int32_t> sum;
};

class Job {
 public:
  explicit Job(std::uint64_t seed)
      : random_(seed), n_(2 + below(12)), network_(n_, random_()), plans_(random_()) {
    EngineOptions options;
    options.piece_bytes = 64u << below(3);
    options.chunk_bytes = options.piece_bytes * (1 + below(4));
    options.window_bytes = 512;
    options.max_chunks = 1 + below(10);
    options.max_operations = 64;
    const PlanSet first = plans_.plans(n_);
    for (int r = 0; r < n_; ++r) {
      nodes.push_back(
          std::make_unique<Node>(&network_.mesh(r), first, options, below(3) == 0 ? 0 : below(40)));
      network_.set_sink(r, nodes.back().get());
    }
  }

  std::string run(int calls, int changes) {
    std::vector<std::size_t> posted(n_, 0);
    for (int c = 0; c < calls; ++c) add_call();
    bool fails_next = false;
    for (bool moved = true;;) {
      const int r = below(n_);
      if (posted[r] < calls_.size() && below(30) == 0) {
        Operation* o = calls_[posted[r]++].operations[r].get();
        o->state = Operation::State::kRunning;
        nodes[r]->engine.submit(o);
      }
      if (below(10) == 0 || !moved) nodes[r]->finish_preparing();
      Node& root = *nodes[0];
      if (changes > 0 && !root.protocol.is_running() && below(20) == 0 && all_are_ready()) {
        --changes;
        fails_next = below(4) == 0;
        for (auto& node : nodes) node->cannot_prepare = false;
        if (fails_next) nodes[below(n_)]->cannot_prepare = true;
        expected_.push_back(!fails_next);
        const PlanSet plans = plans_.plans(n_);
        root.protocol.begin({encode(plans), digest(plans), 0});
      }
      moved = network_.step();
      for (int i = 0; i < n_; ++i) {
        if (!nodes[i]->error) return "node " + std::to_string(i) + ": " + nodes[i]->error.message();
      }
      // A change needs a former one to be over, which takes chunks.
      const auto is_posted = [&](std::size_t p) { return p == calls_.size(); };
      if (!moved && std::all_of(posted.begin(), posted.end(), is_posted)) changes = 0;
      bool is_over = !moved && changes == 0 && root.outcomes.size() == expected_.size();
      for (int i = 0; i < n_; ++i) {
        is_over &= posted[i] == calls_.size() && !nodes[i]->protocol.is_running();
      }
      if (is_over) break;
    }
    return check();
  }

  std::vector<std::unique_ptr<Node>> nodes;

 private:
  int below(int n) { return static_cast<int>(random_() % n); }
  bool all_are_ready() const {
    for (const auto& node : nodes) {
      if (node->engine.generations() == Engine::kMaxGenerations) return false;
    }
    return true;
  }
  void add_call() {
    Call c;
    const int count = 1 + below(400);
    c.sum.assign(count, 0);
    c.data.resize(n_);
    for (int r = 0; r < n_; ++r) {
      for (int i = 0; i < count; ++i) c.data[r].push_back(static_cast<std::int32_t>(random_()));
      for (int i = 0; i < count; ++i) {
        c.sum[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(c.sum[i]) +
                                             static_cast<std::uint32_t>(c.data[r][i]));
      }
    }
    calls_.push_back(std::move(c));
    for (int r = 0; r < n_; ++r) {
      auto o = std::make_unique<Operation>();
      o->type = DataType::kInt32;
      o->count = static_cast<std::uint64_t>(count);
      o->recv = reinterpret_cast<std::byte*>(calls_.back().data[r].data());
      o->send = o->recv;
      calls_.back().operations.push_back(std::move(o));
    }
  }
  std::string check() const {
    for (const Call& c : calls_) {
      for (int r = 0; r < n_; ++r) {
        if (c.operations[r]->state != Operation::State::kDone) return "an operation never ended";
        if (c.data[r] != c.sum) return "wrong sum on node " + std::to_string(r);
      }
    }
    std::size_t successes = 0;
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      const Result<std::uint64_t>& outcome = nodes[0]->outcomes[i];
      if (outcome.is_ok() != expected_[i]) return "outcome " + std::to_string(i) + " is wrong";
      if (!outcome && outcome.status().message().find("no memory") == std::string::npos) {
        return "the cause is lost: " + outcome.status().message();
      }
      successes += outcome.is_ok();
    }
    for (const auto& node : nodes) {
      if (node->switched_at != nodes[0]->switched_at) return "nodes changed at different chunks";
      if (node->switched_at.size() != successes) return "a decision did not arrive";
    }
    return "";
  }

  std::mt19937_64 random_;
  int n_;
  MemoryNetwork network_;
  testing::RandomPlans plans_;
  std::vector<Call> calls_;
  std::vector<bool> expected_;
};

TEST(PlanSwitch, AnyTimingKeepsSumsExactAndNodesTogether) {
  if (const char* one = std::getenv("RIFFLE_TEST_SEED")) {
    ASSERT_EQ(Job(std::strtoull(one, nullptr, 10)).run(12, 5), "");
    return;
  }
  for (std::uint64_t seed = 0; seed < cases(600); ++seed) {
    ASSERT_EQ(Job(seed).run(12, 5), "") << "repeat with RIFFLE_TEST_SEED=" << seed;
  }
}

// The decision never comes: a node that promised not to start a chunk does not start it.
TEST(PlanSwitch, NobodyPassesItsPromise) {
  Job job(7);
  Node& node = *job.nodes[1];
  const std::uint64_t limit = node.engine.next_seq() + 2;
  node.engine.hold_at(limit);
  std::vector<std::int32_t> data(4000, 1);
  Operation o;
  o.type = DataType::kInt32;
  o.count = data.size();
  o.send = o.recv = reinterpret_cast<std::byte*>(data.data());
  o.state = Operation::State::kRunning;
  node.engine.submit(&o);
  EXPECT_LE(node.engine.next_seq(), limit);
  node.engine.fail();
}

// Node 0 of four, whose children are 1 and 2.
TEST(PlanSwitch, ReportsThatAreNotWaitedForAreErrors) {
  std::vector<Result<std::uint64_t>> outcomes;
  PlanSwitch root(0, 4,
                  {.send = [](int, std::uint32_t, const std::vector<std::uint8_t>&) {},
                   .prepare = [](const PlanSwitch::Order&,
                                 const std::function<void(Status)>& prepared) { prepared({}); },
                   .hold = [](std::uint64_t) { return std::uint64_t{5}; },
                   .use = [](std::uint64_t) {},
                   .drop = [] {},
                   .decided = [&](const Result<std::uint64_t>& seq) { outcomes.push_back(seq); }});
  const auto report = [&](int peer, std::uint64_t seq) {
    ByteWriter w;
    w.number(1);
    w.number(seq);
    w.blob(std::string());
    return root.received(peer, PlanSwitch::kPlanKinds + 1, w.take());
  };
  root.begin({});
  EXPECT_FALSE(report(3, 6)) << "not our child";
  EXPECT_FALSE(report(1, std::uint64_t{1} << 63)) << "no chunk has that number";
  root.departed(3);
  EXPECT_FALSE(outcomes.back().status());
  outcomes.clear();
  EXPECT_TRUE(report(1, 6)) << "late: the change is over";
}

// Node 1 of two has prepared for chunk 5.
TEST(PlanSwitch, ADecisionThatWasNotAgreedToIsAnError) {
  std::uint64_t used = 0;
  std::function<void(Status)> prepared;
  PlanSwitch node(1, 2,
                  {.send = [](int, std::uint32_t, const std::vector<std::uint8_t>&) {},
                   .prepare = [&](const PlanSwitch::Order&,
                                  const std::function<void(Status)>& done) { prepared = done; },
                   .hold = [](std::uint64_t) { return std::uint64_t{5}; },
                   .use = [&](std::uint64_t seq) { used = seq; },
                   .drop = [] {},
                   .decided = [](const Result<std::uint64_t>&) {}});
  const auto decision = [&](std::uint64_t seq) {
    ByteWriter w;
    w.number(1);
    w.number(1);
    w.number(seq);
    return node.received(0, PlanSwitch::kPlanKinds + 2, w.take());
  };
  ByteWriter order;
  order.number(1);
  order.number(0);
  order.number(0);
  order.blob(std::vector<std::uint8_t>());
  ASSERT_TRUE(node.received(0, PlanSwitch::kPlanKinds, order.take()));
  EXPECT_FALSE(decision(7)) << "before it has prepared";
  prepared({});
  EXPECT_FALSE(decision(4)) << "it may have started chunk 4";
  EXPECT_FALSE(decision(std::uint64_t{1} << 63));
  EXPECT_TRUE(decision(7));
  EXPECT_EQ(used, 7u);
}

// Node 3 of four, whose parent 1 has passed the order on and left; node 0 says no to all.
TEST(PlanSwitch, ANoThatOvertakesItsOrderHoldsNobody) {
  int orders = 0, held = 0;
  PlanSwitch node(3, 4,
                  {.send = [](int, std::uint32_t, const std::vector<std::uint8_t>&) {},
                   .prepare =
                       [&](const PlanSwitch::Order&, const std::function<void(Status)>& done) {
                         ++orders;
                         done({});
                       },
                   .hold =
                       [&](std::uint64_t) {
                         ++held;
                         return std::uint64_t{5};
                       },
                   .use = [](std::uint64_t) {},
                   .drop = [] {},
                   .decided = [](const Result<std::uint64_t>&) {}});
  const auto order = [&](std::uint64_t attempt) {
    ByteWriter w;
    w.number(attempt);
    w.number(0);
    w.number(0);
    w.blob(std::vector<std::uint8_t>());
    return node.received(1, PlanSwitch::kPlanKinds, w.take());
  };
  ByteWriter no;
  no.number(1);
  no.number(0);
  no.number(0);
  ASSERT_TRUE(node.received(0, PlanSwitch::kPlanKinds + 2, no.take()));
  ASSERT_TRUE(order(1));
  EXPECT_EQ(orders, 0);
  EXPECT_EQ(held, 0);
  EXPECT_FALSE(node.is_running());
  ASSERT_TRUE(order(2));
  EXPECT_EQ(orders, 1);
  EXPECT_TRUE(node.is_running());
}

}  // namespace
}  // namespace riffle::plan_switch_test
