// MemberMesh: the nodes of one term (membership.h) seen as a mesh of their own, numbered 0, 1, ...
// in the order of their ranks, so that the engine and all else written against a mesh works for the
// survivors of a loss as it does for all nodes.
//
// Cookies of its frames have kTermCookie, but for kNoCookie. Frames carry the term's mark, so that
// late ones of an earlier term are known as such. Frames are
// counted over all terms: a term may begin when those of the ones before have arrived.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/collective/base/frames.h"
#include "plugin/collective/elastic/membership.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {

// Per node of the whole mesh, over all terms.
struct TermTraffic {
  explicit TermTraffic(int nodes) : sent(nodes), arrived(nodes), under_way(nodes) {}
  std::vector<std::uint64_t> sent, arrived;  // frames
  std::vector<std::uint64_t> under_way;      // frames with a payload that have not left yet
};

// The mark of a term in its frames: never 0, which frames outside of terms have.
inline std::uint16_t mark_of(std::uint64_t term) {
  return static_cast<std::uint16_t>(1 + term % 0xffff);
}

class MemberMesh final : public Mesh {
 public:
  MemberMesh(Mesh* whole, const Membership& members, TermTraffic* traffic);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.nodes.size()); }
  int number_of(int node) const override { return members_.nodes[node]; }
  void open(int /*peer*/) override {}  // all are
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override;
  LinkActivity activity(int peer) override { return whole_->activity(members_.nodes[peer]); }
  NicBytes others_on_nics() override { return whole_->others_on_nics(); }
  void hint(int peer, RateHints hints) override {
    if (!is_frozen_) whole_->hint(members_.nodes[peer], hints);
  }
  void set_peer_weights(std::span<const int> weights) override;
  void dismiss(int peer) override { whole_->dismiss(members_.nodes[peer]); }
  std::uint64_t now_ns() const override { return whole_->now_ns(); }
  void abort() override { whole_->abort(); }

  // Nothing is sent any more.
  void freeze() { is_frozen_ = true; }
  const Membership& members() const { return members_; }

 private:
  Mesh* const whole_;
  const Membership members_;
  TermTraffic* const traffic_;
  const int rank_;
  bool is_frozen_ = false;
};

}  // namespace riffle
