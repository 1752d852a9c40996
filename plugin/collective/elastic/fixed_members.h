// FixedMembers: the nodes of connect work together to the end; without any of them no collective
// over all of them can end, so a loss is an error of all nodes.
//
// A peer that closes its communicator has sent all that it ever will: what runs then has the peer
// timeout to end by itself, and a further collective over all nodes fails at once. Not so a
// reduce-scatter: a node that owns nothing of one is through with it when its part has left, which
// may be before the others have called it; and what it sent is here, or comes before its goodbye.
//
// Threads: the mesh's owner.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plugin/collective/elastic/member_work.h"
#include "plugin/collective/elastic/members.h"

namespace riffle {

class FixedMembers final : public Members {
 public:
  // All must outlive this.
  FixedMembers(Mesh* mesh, ControlChannel* control, TimerService* timers, Background* background,
               const MemberWork::Options& options, std::uint64_t peer_timeout_ns,
               MemberHooks hooks);
  ~FixedMembers() override;

  Status install(const PlanSet& plans, bool knows_lengths) override;
  void start(const PlanSet& plans) override;
  void submit(Operation* operation) override;
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override { work_.sent(peer, cookie); }
  bool owns_message(const FrameHeader& /*header*/) const override { return false; }
  bool is_mine(std::uint32_t kind) const override { return work_.is_mine(kind); }
  void received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) override;
  void departed(int peer) override;
  void lost(int peer, const std::string& why) override;
  void leave(const std::string& why) override { hooks_.tell(why); }
  void fail() override { work_.fail(); }
  bool retire() override;
  bool is_needed() const override { return !has_failed() && !work_.is_idle(); }
  bool end() override;
  std::optional<std::vector<int>> waits_for() const override {
    if (work_.is_idle() || work_.take_moved()) return std::nullopt;
    return work_.waits_for();
  }
  bool has_failed() const override { return work_.has_failed(); }
  const Membership& membership() const override { return membership_; }

 private:
  bool can_do_without(const Operation& operation) const;
  void watch_departed();
  void stop_watching();

  Mesh* const mesh_;
  TimerService* const timers_;
  const MemberHooks hooks_;
  const std::uint64_t peer_timeout_ns_;
  const bool replans_;
  Membership membership_;
  MemberWork work_;
  bool is_started_ = false, is_retired_ = false;
  std::string left_;  // the first that said goodbye
  std::optional<std::uint64_t> timer_;
};

}  // namespace riffle
