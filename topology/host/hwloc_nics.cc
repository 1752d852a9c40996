#include "topology/host/hwloc_nics.h"

#include <map>
#include <sstream>
#include <string>

#include "topology/host/sysfs.h"

namespace riffle {
namespace {

constexpr const char* kState = "RiffleState";
constexpr const char* kSpeed = "RiffleSpeedMbps";
constexpr const char* kDriver = "RiffleDriver";
constexpr const char* kKind = "RiffleKind";
constexpr const char* kMtu = "RiffleMtu";
constexpr const char* kBondMembers = "RiffleBondMembers";
constexpr const char* kBondMaster = "RiffleBondMaster";
constexpr const char* kLower = "RiffleLower";

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string state_of(const Nic& nic) {
  if (nic.is_loopback) return "loopback";
  if (!nic.is_up) return "down";
  return nic.is_running ? "up" : "no-carrier";
}

void collect(hwloc_obj_t object, std::map<std::string, hwloc_obj_t>& by_name) {
  const bool is_nic = object->type == HWLOC_OBJ_OS_DEVICE && object->attr != nullptr &&
                      object->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
  if (is_nic && object->name != nullptr) by_name[object->name] = object;
  for (hwloc_obj_t first : {object->first_child, object->io_first_child}) {
    for (hwloc_obj_t child = first; child != nullptr; child = child->next_sibling) {
      collect(child, by_name);
    }
  }
}

}  // namespace

bool is_recorded_nic(hwloc_obj_t object) {
  return object->name != nullptr && *hwloc_info(object, kState) != '\0';
}

Nic recorded_nic(hwloc_obj_t object) {
  Nic nic;
  nic.name = object->name;
  nic.is_virtual = object->type == HWLOC_OBJ_MISC;
  const std::string state = hwloc_info(object, kState);
  nic.is_loopback = state == "loopback";
  nic.is_up = state != "down";
  nic.is_running = nic.is_up && state != "no-carrier";
  set_speed(hwloc_info(object, kSpeed), nic);
  nic.driver = hwloc_info(object, kDriver);
  nic.kind = hwloc_info(object, kKind);
  nic.mac = hwloc_info(object, "Address");
  nic.mtu = sysfs::non_negative(hwloc_info(object, kMtu)).value_or(0);
  nic.bond_members = words_of(hwloc_info(object, kBondMembers));
  nic.bond_master = hwloc_info(object, kBondMaster);
  nic.lower = words_of(hwloc_info(object, kLower));
  return nic;
}

void annotate(const HwlocTopology& topology, const std::vector<Nic>& nics) {
  const HwlocLibrary& library = topology.library();
  std::map<std::string, hwloc_obj_t> by_name;
  collect(topology.root(), by_name);
  for (const Nic& nic : nics) {
    hwloc_obj_t object = by_name[nic.name];
    if (object == nullptr) {
      object =
          library.topology_insert_misc_object(topology.handle(), topology.root(), nic.name.c_str());
      if (object == nullptr) continue;
      if (!nic.mac.empty()) library.obj_add_info(object, "Address", nic.mac.c_str());
    }
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) library.obj_add_info(object, name, value.c_str());
    };
    add(kState, state_of(nic));
    add(kSpeed, nic.speed_mbps ? std::to_string(*nic.speed_mbps) : nic.odd_speed);
    add(kDriver, nic.driver);
    add(kKind, nic.kind);
    add(kMtu, nic.mtu > 0 ? std::to_string(nic.mtu) : "");
    add(kBondMembers, joined_words(nic.bond_members));
    add(kBondMaster, nic.bond_master);
    add(kLower, joined_words(nic.lower));
  }
}

}  // namespace riffle
