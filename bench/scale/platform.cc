#include "bench/scale/platform.h"

#include <algorithm>
#include <cmath>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

namespace riffle::scale {
namespace {

namespace sg = simgrid::s4u;

constexpr double kNodeKbps = 25e6;
constexpr double kWideKbps = 10e6;
constexpr double kHopSeconds = 1e-6;
constexpr double kWideSeconds = 5e-3;
constexpr double kSpeed = 1e9;  // of the hosts, who compute nothing

double bytes_per_second(double kbps) { return kbps * 125; }

using NetPoint = simgrid::kernel::routing::NetPoint;

// Fat trees and dragonflies number their leaves from 0; the ids are the ranks.
sg::ClusterCallbacks hosts_into(std::vector<sg::Host*>& hosts) {
  return sg::ClusterCallbacks([&hosts](sg::NetZone* zone, const std::vector<unsigned long>&,
                                       unsigned long) -> std::pair<NetPoint*, NetPoint*> {
    sg::Host* host = zone->create_host("h" + std::to_string(hosts.size()), kSpeed);
    hosts.push_back(host);
    return {host->get_netpoint(), nullptr};
  });
}

Fabric fabric_of(int nodes, int per_rack, double uplink_kbps, double latency_s) {
  Fabric f = even_fabric(nodes, static_cast<std::int64_t>(kNodeKbps));
  f.racks.clear();
  const auto uplink = static_cast<std::int64_t>(uplink_kbps);
  for (int r = 0; r < nodes / per_rack; ++r) {
    f.racks.push_back({"r" + std::to_string(r), uplink, uplink});
  }
  for (int n = 0; n < nodes; ++n) {
    f.nodes[n].name = "h" + std::to_string(n);
    f.nodes[n].rack = n / per_rack;
  }
  f.latency_us = std::max<std::int64_t>(1, std::llround(latency_s * 1e6));
  return f;
}

Platform fat_tree(int nodes, int taper) {
  Platform p;
  const int per_rack = nodes >= 1024 ? 64 : 16;
  const auto racks = static_cast<unsigned>(nodes / per_rack);
  const auto spines = static_cast<unsigned>(per_rack / taper);
  const sg::FatTreeParams shape(2, {static_cast<unsigned>(per_rack), racks}, {1, spines}, {1, 1});
  sg::create_fatTree_zone("cluster", nullptr, shape, hosts_into(p.hosts),
                          bytes_per_second(kNodeKbps), kHopSeconds,
                          sg::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  p.fabric = fabric_of(nodes, per_rack, spines * kNodeKbps, 4 * kHopSeconds);
  return p;
}

Platform dragonfly(int nodes) {
  Platform p;
  // Groups of chassis x routers x nodes = 4 x 4 x 4 that are no limit inside; every group has one
  // link to every other.
  const unsigned groups = static_cast<unsigned>(nodes) / 64;
  const sg::DragonflyParams shape({groups, 1}, {4, 4}, {4, 4}, 4);
  sg::create_dragonfly_zone("cluster", nullptr, shape, hosts_into(p.hosts),
                            bytes_per_second(kNodeKbps), kHopSeconds,
                            sg::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  p.fabric = fabric_of(nodes, 64, (groups - 1) * kNodeKbps, 5 * kHopSeconds);
  return p;
}

Platform multi_site(int nodes) {
  Platform p;
  constexpr int kSites = 4;
  sg::NetZone* world = sg::create_star_zone("world");
  for (int s = 0; s < kSites; ++s) {
    const std::string id = std::to_string(s);
    sg::NetZone* site = sg::create_star_zone("site" + id);
    site->set_parent(world);
    for (int n = 0; n < nodes / kSites; ++n) {
      const std::string name = "h" + std::to_string(p.hosts.size());
      sg::Host* host = site->create_host(name, kSpeed);
      const auto* link = site->create_split_duplex_link("link-" + name, bytes_per_second(kNodeKbps))
                             ->set_latency(kHopSeconds)
                             ->seal();
      site->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                      {{link, sg::LinkInRoute::Direction::UP}}, true);
      p.hosts.push_back(host);
    }
    NetPoint* gateway = site->create_router("gateway" + id);
    site->add_route(gateway, nullptr, nullptr, nullptr, std::vector<sg::LinkInRoute>{}, true);
    site->seal();
    const auto* wide = world->create_split_duplex_link("wide" + id, bytes_per_second(kWideKbps))
                           ->set_latency(kWideSeconds / 2)
                           ->seal();
    world->add_route(site->get_netpoint(), nullptr, gateway, nullptr,
                     {{wide, sg::LinkInRoute::Direction::UP}}, true);
  }
  world->seal();
  p.fabric = fabric_of(nodes, nodes / kSites, kWideKbps, kWideSeconds);
  p.fabric.rack_latency_us = std::llround(2 * kHopSeconds * 1e6);
  return p;
}

}  // namespace

const std::vector<std::string>& platform_kinds() {
  static const std::vector<std::string> kinds = {"fat-tree-1", "fat-tree-4", "fat-tree-8",
                                                 "dragonfly", "multi-site"};
  return kinds;
}

Result<Platform> build_platform(const std::string& kind, int nodes) {
  if (nodes < 64 || nodes > 16384 || (nodes & (nodes - 1)) != 0) {
    return invalid_argument("--nodes " + std::to_string(nodes) +
                            ": accepted are powers of two from 64 to 16384");
  }
  if (kind.starts_with("fat-tree-") && kind.size() == 10 &&
      (kind.back() == '1' || kind.back() == '4' || kind.back() == '8')) {
    return fat_tree(nodes, kind.back() - '0');
  }
  if (kind == "dragonfly" && nodes >= 128 && nodes <= 1024) return dragonfly(nodes);
  if (kind == "multi-site") return multi_site(nodes);
  std::string names;
  for (const std::string& k : platform_kinds()) names += (names.empty() ? "" : ", ") + k;
  return invalid_argument(
      "--platform " + kind + ": accepted are " + names +
      "; a dragonfly has 128 to 1024 nodes (SimGrid cannot route in more than 256)");
}

}  // namespace riffle::scale
