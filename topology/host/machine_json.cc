#include "topology/host/machine_json.h"

#include <nlohmann/json.hpp>

namespace riffle {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const Nic& nic) {
  Json out = {{"name", nic.name},
              {"up", nic.is_up},
              {"carrier", nic.is_running},
              {"loopback", nic.is_loopback},
              {"virtual", nic.is_virtual},
              {"driver", nic.driver},
              {"speed_mbps", or_null(nic.speed_mbps)},
              {"mtu", nic.mtu},
              {"mac", nic.mac},
              {"pci_path", nic.pci_path},
              {"numa_node", or_null(nic.numa_node)},
              {"rdma", nic.rdma}};
  if (!nic.kind.empty()) out["kind"] = nic.kind;
  if (!nic.bond_members.empty()) out["bond_members"] = nic.bond_members;
  if (!nic.bond_master.empty()) out["bond_master"] = nic.bond_master;
  if (!nic.lower.empty()) out["over"] = nic.lower;
  return out;
}

Json json_of(const Gpu& gpu) {
  return {{"name", gpu.name},
          {"vendor", gpu.vendor},
          {"model", gpu.model},
          {"os_names", gpu.os_names},
          {"pci", gpu.pci_path.empty() ? Json() : Json(gpu.pci_path.back())},
          {"numa_node", or_null(gpu.numa_node)}};
}

Json json_of(const PciFunction& f) {
  Json out = {{"address", f.address()},
              {"path", f.path},
              {"class", hex(f.class_code, 6)},
              {"vendor", hex(f.vendor, 4)},
              {"device", hex(f.device, 4)}};
  if (f.lanes > 0) out["link"] = {{"gtps_per_lane", f.lane_gtps}, {"lanes", f.lanes}};
  return out;
}

// Rows: hardware NICs; columns: GPUs.
Json distances(const Machine& machine) {
  Json out = Json::object();
  for (const Nic& nic : machine.nics) {
    if (nic.is_virtual) continue;
    for (const Gpu& gpu : machine.gpus) {
      out[nic.name][gpu.name] = to_text(distance(place_of(nic), place_of(gpu)));
    }
  }
  return out;
}

}  // namespace

std::string to_json(const Machine& machine) {
  Json out = {{"source", machine.source}, {"architecture", machine.architecture}};
  out["processors"] = Json::array();
  for (const Processor& p : machine.processors) {
    out["processors"].push_back({{"id", p.id},
                                 {"vendor", p.vendor},
                                 {"model", p.model},
                                 {"family", p.family},
                                 {"model_number", p.model_number}});
  }
  out["numa_nodes"] = Json::array();
  for (const NumaNode& n : machine.numa_nodes) {
    out["numa_nodes"].push_back({{"id", n.id},
                                 {"processor", n.processor},
                                 {"cpus", to_text(n.cpus)},
                                 {"memory_mib", n.memory_mib}});
  }
  out["cores"] = Json::array();
  for (const Core& c : machine.cores) {
    out["cores"].push_back({{"processor", c.processor},
                            {"numa_node", or_null(c.numa_node)},
                            {"cpus", to_text(c.cpus)}});
  }
  for (const char* list : {"nics", "gpus", "pci"}) out[list] = Json::array();
  for (const Nic& nic : machine.nics) out["nics"].push_back(json_of(nic));
  for (const Gpu& gpu : machine.gpus) out["gpus"].push_back(json_of(gpu));
  for (const PciFunction& f : machine.pci) out["pci"].push_back(json_of(f));
  out["distances"] = distances(machine);
  out["notes"] = machine.notes;
  // Names from files may be no UTF-8: replaced, never thrown at.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace riffle
