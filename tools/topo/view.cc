#include "tools/topo/view.h"

#include <unistd.h>

#include <algorithm>

#include "plugin/entry/options.h"
#include "plugin/transport/device/device_choice.h"
#include "plugin/transport/device/nic_choice.h"
#include "plugin/transport/device/thread_count.h"
#include "tools/numbers.h"
#include "topology/host/machine_read.h"

namespace riffle::tools::topo {
namespace {

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

bool has_address(const std::vector<NicAddress>& addresses, const std::string& interface) {
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const NicAddress& a) { return a.interface == interface; });
}

std::string over(const Machine& machine, const Nic& nic) {
  std::string names;
  for (const Nic* const card : hardware_of(machine.nics, nic.name)) {
    if (card->name != nic.name) names += (names.empty() ? "over " : ", ") + card->name;
  }
  return names;
}

// An interface that runs directly over `name`, if any.
std::string above(const Machine& machine, const std::string& name) {
  for (const Nic& nic : machine.nics) {
    if (std::find(nic.lower.begin(), nic.lower.end(), name) != nic.lower.end()) return nic.name;
  }
  return "";
}

NicUse use_of(const View& view, const Nic& nic, const std::vector<NicAddress>& used,
              const std::vector<NicAddress>& addresses, const std::vector<LeftOut>& left_out) {
  if (has_address(used, nic.name)) {
    return {true, nic.is_virtual ? over(view.machine, nic) : std::string()};
  }
  if (!nic.bond_master.empty()) return {false, "in " + nic.bond_master};
  if (nic.is_loopback) return {false, "loopback"};
  if (!nic.is_up) return {false, "down"};
  if (!nic.is_running) return {false, "no carrier"};
  if (!has_address(addresses, nic.name)) {
    const std::string upper = above(view.machine, nic.name);
    return {false, upper.empty() ? "no address" : "under " + upper};
  }
  for (const LeftOut& l : left_out) {
    if (l.interface == nic.name) return {false, l.why};
  }
  return {false, "Riffle does not start"};
}

void advise(View& view, const std::vector<NicAddress>& used) {
  int fastest = 0;
  std::string fastest_name;
  for (const NicAddress& a : used) {
    const int speed = real_speed_mbps(view.machine.nics, a.interface).value_or(0);
    if (speed > fastest) {
      fastest = speed;
      fastest_name = a.interface;
    }
  }
  std::string slow;
  for (const NicAddress& a : used) {
    constexpr int kMuchSlower = 4;
    const auto speed = real_speed_mbps(view.machine.nics, a.interface);
    if (speed && *speed * kMuchSlower <= fastest) slow += (slow.empty() ? "" : ",") + a.interface;
  }
  if (!slow.empty()) {
    view.advice.push_back(
        "much slower than " + fastest_name + ": " + slow +
        "; a port for management is better left out: RIFFLE_SOCKET_IFNAME='^=" + slow + "'");
  }
  for (const Nic& nic : view.machine.nics) {
    if (!nic.is_virtual && nic.is_up && !nic.is_running) {
      view.advice.push_back(nic.name +
                            " has no carrier: a cable, a transceiver or the switch port");
    }
  }
}

void complete(View& view, const std::vector<NicAddress>& addresses) {
  const DeviceChoice choice = options_from(config()).transport.devices;
  const Result<NicChoice> nics = choose_nics(addresses, view.machine.nics, choice);
  std::vector<LeftOut> left_out;
  if (nics) {
    view.devices = make_devices((*nics).chosen, view.machine.nics, choice.per_nic);
    view.advice = (*nics).warnings;
    left_out = (*nics).left_out;
  } else {
    view.advice = {"Riffle would not start: " + nics.status().message()};
  }
  std::vector<NicAddress> used;
  CoreRequest request{
      .allowed = view.job_cpus,
      .nics = {},
      .threads = thread_count(config().threads, view.devices, view.job_cpus.size())};
  for (const Device& device : view.devices) {
    for (const NicAddress& a : device.addresses) {
      used.push_back(a);
      request.nics.push_back(a.interface);
    }
  }
  view.devices_why = choice.rule.empty()
                         ? "the NICs that are up, with a carrier, an address and more than a "
                           "tenth of the fastest one's speed"
                         : choice.rule_source + "=" + choice.rule;
  for (const Nic& nic : view.machine.nics) {
    view.uses.push_back(use_of(view, nic, used, addresses, left_out));
  }
  view.placement = *placement::decide(config().cpus, request, [&view] { return &view.machine; });
  if (!view.placement.warning.empty()) view.advice.push_back(view.placement.warning);
  advise(view, used);
  view.advice.insert(view.advice.end(), view.machine.notes.begin(), view.machine.notes.end());
}

}  // namespace

View view_of_this_machine() {
  View view;
  view.name = host_name();
  view.job_cpus = placement::job_mask();
  view.machine = read_machine(view.job_cpus);
  complete(view, interfaces_of_this_machine().addresses);
  return view;
}

View view_of(Machine machine, const std::string& name) {
  View view;
  view.name = name;
  view.is_recorded = true;
  view.machine = std::move(machine);
  view.job_cpus = cpus_of(view.machine);
  std::vector<NicAddress> addresses;
  for (const Nic& nic : view.machine.nics) {
    const bool carries = nic.is_up && nic.bond_master.empty();
    // Something runs over it: that has the address.
    const bool is_below =
        std::any_of(view.machine.nics.begin(), view.machine.nics.end(), [&](const Nic& other) {
          return std::find(other.lower.begin(), other.lower.end(), nic.name) != other.lower.end();
        });
    const bool has_hardware = !hardware_of(view.machine.nics, nic.name).empty();
    if (carries && !is_below && (has_hardware || nic.is_loopback)) {
      addresses.push_back({.interface = nic.name, .address = "address of " + nic.name});
    }
  }
  complete(view, addresses);
  return view;
}

std::string speed_text(const Machine& machine, const Nic& nic) {
  const auto speed = real_speed_mbps(machine.nics, nic.name);
  return speed ? rate_text(*speed) : "unknown";
}

std::string address_of(const PciPath& path) { return path.empty() ? "" : path.back(); }

std::string interfaces_of(const Device& device) {
  std::string text;
  for (const NicAddress& a : device.addresses) text += (text.empty() ? "" : ", ") + a.interface;
  return text;
}

}  // namespace riffle::tools::topo
