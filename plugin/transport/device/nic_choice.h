// Which of a machine's NICs carry traffic. Data in, data out (device.cc looks at the machine).
//
// A setting that names interfaces (RIFFLE_SOCKET_IFNAME, interface_filter.h) is followed to the
// letter. Without one, and among those that an excluding one leaves, the best kind that the machine
// has is taken, and nothing of the other kinds:
//   1. NICs, and bonds, VLANs and bridges over them (a bond's members are part of it)
//   2. wireless
//   3. virtual interfaces: a veth is all that a container has, and then it is its real interface
//   4. of those, the ones that are still named veth*
//   5. link-local addresses only (169.254/16, fe80::/10)
//   6. the USB network of a management controller
//   7. what containers and virtual machines hang on: docker*, br-* over no NIC, virbr*, cni*, ...
//   8. loopback
// Of that kind those with a tenth or less of the fastest one's speed are left out. A speed that the
// driver does not tell (virtio, ENA) leaves nothing out; in the order it counts as 10 Gbit/s.
//
// With a device per NIC all nodes need the same devices in the same order (NCCL 2.30), so that what
// a cable negotiated must not change them: then speeds neither sort nor leave out.
#pragma once

#include <string>
#include <vector>

#include "plugin/transport/base/options.h"
#include "plugin/transport/device/device.h"
#include "topology/base/status.h"
#include "topology/host/nics.h"

namespace riffle {

struct LeftOut {
  std::string interface;
  std::string why;  // a few words, e.g. "link-local address only"
};

// "eno1 (1000 Mbit/s where eth0 has 100000), docker0 (...)"; of many the first, and how many more.
std::string to_text(const std::vector<LeftOut>& left_out);

struct NicChoice {
  std::vector<NicAddress> chosen;  // one per interface, the fastest first; at least one
  std::vector<LeftOut> left_out;   // interfaces with an address that are not used; not loopback
  std::vector<std::string> warnings;
};

// `addresses`: of the interfaces that are up; `nics`: what sysfs says of them, empty if unknown. An
// error where a setting leaves no interface: it names the setting and what there is.
Result<NicChoice> choose_nics(const std::vector<NicAddress>& addresses,
                              const std::vector<Nic>& nics, const DeviceChoice& choice);

// What an interface runs at, 10 Gbit/s if that is unknown (as NCCL assumes for sockets).
int assumed_speed_mbps(const std::vector<Nic>& nics, const std::string& interface);

}  // namespace riffle
