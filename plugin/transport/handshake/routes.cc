#include "plugin/transport/handshake/routes.h"

#include <algorithm>
#include <set>

#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {
namespace {

bool is_in_network(const Endpoint& endpoint, const NicAddress& own) {
  const Result<Endpoint> self = to_endpoint(own);
  if (!self || endpoint.is_ipv6 != own.is_ipv6 || own.prefix_bits == 0) return false;
  for (int bit = 0; bit < own.prefix_bits; bit += 8) {
    const std::size_t i = static_cast<std::size_t>(bit) / 8;
    const int missing = std::max(0, 8 - (own.prefix_bits - bit));
    if ((endpoint.address[i] ^ self->address[i]) >> missing != 0) return false;
  }
  return true;
}

bool is_own(const Endpoint& endpoint, const std::vector<NicAddress>& own) {
  return std::any_of(own.begin(), own.end(), [&](const NicAddress& a) {
    const Result<Endpoint> self = to_endpoint(a);
    return self && self->is_ipv6 == endpoint.is_ipv6 && self->address == endpoint.address;
  });
}

// Without what leads back to this machine: an address that both nodes have is of a network that
// repeats on every node (a bridge of virtual machines, a BMC's). A peer on this machine has all of
// its addresses in common.
std::vector<Endpoint> elsewhere(const std::vector<Endpoint>& to,
                                const std::vector<NicAddress>& own) {
  std::vector<Endpoint> out;
  std::copy_if(to.begin(), to.end(), std::back_inserter(out),
               [&](const Endpoint& e) { return !is_own(e, own); });
  return out.empty() ? to : out;
}

// Indices of endpoints and of own addresses that share a network; each next pair is of those whose
// NICs the pairs before it used least.
struct Pair {
  std::size_t to, own;
};
std::vector<Pair> neighbours(const std::vector<Endpoint>& to, const std::vector<NicAddress>& own) {
  std::vector<Pair> all, ordered;
  for (std::size_t i = 0; i < to.size(); ++i) {
    for (std::size_t j = 0; j < own.size(); ++j) {
      if (is_in_network(to[i], own[j])) all.push_back({i, j});
    }
  }
  std::vector<int> used_to(to.size()), used_own(own.size());
  while (!all.empty()) {
    const auto next = std::min_element(all.begin(), all.end(), [&](const Pair& a, const Pair& b) {
      return used_to[a.to] + used_own[a.own] < used_to[b.to] + used_own[b.own];
    });
    ++used_to[next->to];
    ++used_own[next->own];
    ordered.push_back(*next);
    all.erase(next);
  }
  return ordered;
}

std::uint32_t any_scope(const std::vector<NicAddress>& own) {
  for (const NicAddress& a : own) {
    if (a.is_ipv6 && a.scope_id != 0) return a.scope_id;
  }
  return 0;
}

}  // namespace

std::vector<Route> routes(const std::vector<Endpoint>& all, const std::vector<NicAddress>& own,
                          std::size_t stream) {
  const std::vector<Endpoint> to = elsewhere(all, own);
  const std::vector<Pair> near = neighbours(to, own);
  std::vector<Route> out;
  for (std::size_t i = 0; i < near.size(); ++i) {
    const Pair& p = near[(i + stream) % near.size()];
    out.push_back({.to = to[p.to], .from = own[p.own], .scope_id = own[p.own].scope_id});
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t at = (i + stream) % to.size();
    const bool is_near = std::any_of(near.begin(), near.end(), [&](auto& p) { return p.to == at; });
    if (!is_near) out.push_back({.to = to[at], .from = {}, .scope_id = any_scope(own)});
  }
  return out;
}

int streams_for(const std::vector<Endpoint>& to, const std::vector<NicAddress>& own, int wanted) {
  std::set<std::size_t> remote, local;
  for (const Pair& p : neighbours(elsewhere(to, own), own)) {
    remote.insert(p.to);
    local.insert(p.own);
  }
  const auto nics = static_cast<int>(std::max(remote.size(), local.size()));
  return std::min(std::max(wanted, nics), kMaxStreams);
}

}  // namespace riffle
