// Which of a machine's addresses become devices: NCCL's rules for interface names, as data in, data
// out (device.cc looks at the machine). The rules are those of NCCL's NCCL_SOCKET_IFNAME:
//   "eth,ib"   names that begin with one of the words      "^docker"  all but those
//   "=eth0"    exactly this name                           "^=eth0"   all but exactly this one
#pragma once

#include <string>
#include <vector>

#include "plugin/transport/device/device.h"
#include "topology/host/nics.h"

namespace riffle {

class InterfaceFilter {
 public:
  explicit InterfaceFilter(const std::string& rule);
  bool accepts(const std::string& interface) const;

 private:
  bool excludes_ = false;
  bool is_exact_ = false;
  std::vector<std::string> words_;
};

struct DeviceChoice {
  std::string rule;         // empty: all but docker, virbr and loopback
  std::string rule_source;  // the variable that holds it, for messages
  std::string family = "any";
  bool per_nic = false;
};

// At least one device. `warnings` gets a sentence for everything that is not as the user asked.
std::vector<Device> choose_devices(const std::vector<NicAddress>& addresses,
                                   const std::vector<Nic>& nics, const DeviceChoice& choice,
                                   std::vector<std::string>* warnings);

// What this process would choose from and by: the addresses of the interfaces that are up, and the
// settings with NCCL's where ours are empty (device.cc).
std::vector<NicAddress> addresses_of_this_machine();
DeviceChoice choice_of_the_user();

}  // namespace riffle
