#include "plugin/collective/elastic/member_mesh.h"

namespace riffle {

MemberMesh::MemberMesh(Mesh* whole, const Membership& members, TermTraffic* traffic)
    : whole_(whole), members_(members), traffic_(traffic), rank_(members.place_of(whole->rank())) {}

void MemberMesh::send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
                      std::uint64_t cookie, std::uint64_t priority) {
  if (is_frozen_) return;
  const int node = members_.nodes[peer];
  FrameHeader marked = header;
  marked.term = mark_of(members_.term);
  ++traffic_->sent[node];
  if (cookie != kNoCookie) {
    ++traffic_->under_way[node];
    cookie |= kTermCookie;
  }
  whole_->send(node, marked, payload, cookie, priority);
}

void MemberMesh::set_peer_weights(std::span<const int> weights) {
  if (is_frozen_) return;
  std::vector<int> of_all(weights.empty() ? 0 : whole_->size(), 1);
  for (std::size_t i = 0; i < weights.size(); ++i) of_all[members_.nodes[i]] = weights[i];
  whole_->set_peer_weights(of_all);
}

}  // namespace riffle
