// Term: the nodes that work together from one loss to the next, and their work, over a mesh of just
// them (member_mesh.h).
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "plugin/collective/base/background.h"
#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/elastic/completion.h"
#include "plugin/collective/elastic/member_mesh.h"
#include "plugin/collective/elastic/member_work.h"

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

class Term {
 public:
  struct Message {
    int place;
    std::uint32_t kind;
    std::vector<std::uint8_t> bytes;
  };
  struct Surroundings {
    Mesh* whole = nullptr;
    TermTraffic* traffic = nullptr;
    TimerService* timers = nullptr;
    Background* background = nullptr;
  };
  struct Hooks {
    ReplanHooks replan;
    std::function<void(int place, const Status&)> violation;
    std::function<void(const Message&)> received;  // from begin() on
    Completion::AllHave all_have;                  // root
  };
  Term(const Surroundings& around, const Membership& members, const MemberWork::Options& options,
       bool trusts_root, Hooks hooks)
      : mesh(around.whole, members, around.traffic),
        control(&mesh,
                [this](int place, std::uint32_t kind, const std::vector<std::uint8_t>& bytes) {
                  received({place, kind, bytes});
                }),
        background(around.background),
        work(&mesh, &control, around.timers, &background, options, std::move(hooks.replan),
             hooks.violation),
        completion(&mesh, std::move(hooks.all_have), trusts_root),
        received_(std::move(hooks.received)) {}

  int node(int place) const { return mesh.members().nodes[static_cast<std::size_t>(place)]; }
  bool is_root() const { return completion.is_root(); }

  // Takes frames of this type, but for kDone.
  FrameHandler& handler_of(FrameType type) {
    return type == FrameType::kControl ? static_cast<FrameHandler&>(control) : work;
  }

  // It runs here: what came before is received now.
  void begin() {
    has_begun_ = true;
    for (const Message& m : std::exchange(early_, {})) received_(m);
  }

  MemberMesh mesh;
  ControlChannel control;
  TermBackground background;
  MemberWork work;
  Completion completion;
  PlanSet plans;  // root, until it begins

 private:
  void received(Message message) {
    if (has_begun_) return received_(message);
    early_.push_back(std::move(message));
  }

  const std::function<void(const Message&)> received_;
  bool has_begun_ = false;
  std::vector<Message> early_;
};

}  // namespace riffle
