#include "tools/topo/json.h"

#include <nlohmann/json.hpp>

#include "topology/host/machine_json.h"

namespace riffle::tools::topo {
namespace {

using Json = nlohmann::ordered_json;

double mbps(std::int64_t kbps) { return static_cast<double>(kbps) / 1000; }

Json json_of(const Fabric& fabric, const std::string& name) {
  Json out = {{"source", name}, {"latency_us", fabric.latency_us}};
  if (fabric.rack_latency_us) out["rack_latency_us"] = *fabric.rack_latency_us;
  out["racks"] = Json::array();
  for (const RackLink& rack : fabric.racks) {
    out["racks"].push_back({{"name", rack.name},
                            {"up_mbps", mbps(rack.up_kbps)},
                            {"down_mbps", mbps(rack.down_kbps)}});
  }
  out["nodes"] = Json::array();
  for (const NodeLink& node : fabric.nodes) {
    out["nodes"].push_back({{"name", node.name},
                            {"rack", node.rack},
                            {"out_mbps", mbps(node.out_kbps)},
                            {"in_mbps", mbps(node.in_kbps)}});
  }
  return out;
}

}  // namespace

std::string to_json(const View& view) {
  Json out = {{"schema", "riffle-topo-1"},
              {"name", view.name},
              {"machine", Json::parse(riffle::to_json(view.machine))}};
  out["devices"] = Json::array();
  for (const Device& device : view.devices) {
    Json interfaces = Json::array();
    for (const NicAddress& a : device.addresses) interfaces.push_back(a.interface);
    out["devices"].push_back({{"name", device.name},
                              {"interfaces", interfaces},
                              {"speed_mbps", device.speed_mbps},
                              {"pci_path", device.pci_path}});
  }
  out["devices_because"] = view.devices_why;
  out["nics"] = Json::object();
  for (std::size_t i = 0; i < view.uses.size(); ++i) {
    out["nics"][view.machine.nics[i].name] = {{"used", view.uses[i].is_used},
                                              {"why", view.uses[i].why}};
  }
  out["job_cpus"] = riffle::to_text(view.job_cpus);
  out["progress_threads"] = {
      {"cpus", view.placement.cpus.empty() ? Json() : Json(riffle::to_text(view.placement.cpus))},
      {"because", view.placement.why}};
  if (view.fabric) out["fabric"] = json_of(*view.fabric, view.fabric_name);
  out["advice"] = view.advice;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace riffle::tools::topo
