// A clock that tests move by hand, with the timers and the mesh of a node that lives by it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "plugin/transport/base/mesh.h"
#include "plugin/transport/base/timer_service.h"

namespace riffle::testing {

class ManualClock final : public TimerService {
 public:
  std::uint64_t call_at(std::uint64_t when_ns, std::function<void()> f) override {
    timers_.emplace(std::pair(when_ns, ++last_), std::move(f));
    return last_;
  }
  void cancel(std::uint64_t timer) override {
    std::erase_if(timers_, [&](const auto& t) { return t.first.second == timer; });
  }
  void advance(std::uint64_t ns) {
    now_ns_ += ns;
    while (!timers_.empty() && timers_.begin()->first.first <= now_ns_) {
      const auto f = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      f();
    }
  }
  std::uint64_t now_ns() const { return now_ns_; }

 private:
  std::uint64_t now_ns_ = 1;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::function<void()>> timers_;
  std::uint64_t last_ = 0;
};

// Another mesh, but for the time.
class ClockMesh : public Mesh {
 public:
  ClockMesh(Mesh& mesh, const ManualClock& clock) : mesh_(mesh), clock_(clock) {}
  int rank() const override { return mesh_.rank(); }
  int size() const override { return mesh_.size(); }
  void open(int peer) override { mesh_.open(peer); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    mesh_.send(peer, header, payload, cookie, priority);
  }
  void dismiss(int peer) override { mesh_.dismiss(peer); }
  std::uint64_t now_ns() const override { return clock_.now_ns(); }
  void abort() override { mesh_.abort(); }

 private:
  Mesh& mesh_;
  const ManualClock& clock_;
};

}  // namespace riffle::testing
