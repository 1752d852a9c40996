// Which of a machine's addresses become devices: NCCL's rules for interface names, as data in, data
// out (device.cc looks at the machine). The rules are those of NCCL's NCCL_SOCKET_IFNAME:
//   "eth,ib"   names that begin with one of the words      "^docker"  all but those
//   "=eth0"    exactly this name                           "^=eth0"   all but exactly this one
#pragma once

#include <string>
#include <vector>

#include "plugin/transport/base/options.h"
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

// At least one device. `warnings` gets a sentence for everything that is not as the user asked.
std::vector<Device> choose_devices(const std::vector<NicAddress>& addresses,
                                   const std::vector<Nic>& nics, const DeviceChoice& choice,
                                   std::vector<std::string>* warnings);

// What there is to choose from: the addresses of the interfaces that are up (device.cc).
std::vector<NicAddress> addresses_of_this_machine();

}  // namespace riffle
