// Survivors' insides: one term.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "plugin/collective/elastic/survivors.h"

namespace riffle {

// Work of a term that has ended ends without a word.
class TermBackground final : public Background {
 public:
  explicit TermBackground(Background* whole) : whole_(whole) {}
  bool run(std::function<void()> work, std::function<void()> then) override {
    if (whole_ == nullptr) return false;
    return whole_->run(std::move(work),
                       [alive = std::weak_ptr<int>(alive_), then = std::move(then)] {
                         if (!alive.expired()) then();
                       });
  }

 private:
  Background* const whole_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

struct Survivors::Term {
  Term(Survivors* all, const Membership& members)
      : mesh(all->mesh_, members, &all->traffic_),
        control(&mesh,
                [all, this](int place, std::uint32_t kind, const std::vector<std::uint8_t>& m) {
                  if (all->is_started_ && all->term_.get() == this) {
                    return all->term_message(place, kind, m);
                  }
                  early.push_back({place, kind, m});
                }),
        engine(
            &mesh, options_of(*all, members),
            [all, this](int place, const Status& why) { all->hooks_.violation(node(place), why); }),
        sparse(all->options_.sparse
                   ? std::make_unique<SparseRunner>(&mesh, *all->options_.sparse,
                                                    [all, this](int place, const Status& why) {
                                                      all->hooks_.violation(node(place), why);
                                                    })
                   : nullptr),
        background(all->background_),
        replanner(&mesh, &control, &engine, all->timers_, &background, all->options_.replan,
                  hooks_of(all)) {
    for (int i = 0; i < kFanOut; ++i) {
      const int child = mesh.rank() * kFanOut + 1 + i;
      if (child < mesh.size()) children.push_back(child);
    }
    children_done.assign(children.size(), 0);
  }

  static ReplanHooks hooks_of(Survivors* all) {
    ReplanHooks hooks = all->hooks_.replan;
    hooks.too_slow = [all](const std::vector<SlowNode>& places) { all->too_slow(places); };
    return hooks;
  }

  static EngineOptions options_of(const Survivors& all, const Membership& members) {
    EngineOptions options = all.options_.engine;
    options.nodes = members.nodes;
    return options;
  }

  int node(int place) const { return mesh.members().nodes[static_cast<std::size_t>(place)]; }
  int parent() const { return (mesh.rank() - 1) / kFanOut; }
  bool is_root() const { return mesh.rank() == 0; }
  bool has_ended() const { return engine.has_failed(); }

  struct Early {
    int place;
    std::uint32_t kind;
    std::vector<std::uint8_t> message;
  };
  MemberMesh mesh;
  ControlChannel control;
  Engine engine;
  std::unique_ptr<SparseRunner> sparse;  // null unless it is wanted
  TermBackground background;
  Replanner replanner;
  std::vector<Early> early;  // messages before connect was over here
  std::vector<int> children;
  std::vector<std::uint64_t> children_done;  // their subtrees have all results below
  std::uint64_t told = 0;                    // to the parent
  PlanSet plans;                             // root, until the term begins
};

}  // namespace riffle
