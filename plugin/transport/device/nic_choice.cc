#include "plugin/transport/device/nic_choice.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "plugin/transport/device/interface_filter.h"

namespace riffle {
namespace {

bool begins_with_one_of(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto word) { return name.starts_with(word); });
}

bool is_link_local(const NicAddress& a) {
  if (!a.is_ipv6) return a.address.starts_with("169.254.");
  return a.address.size() > 3 && begins_with_one_of(a.address, {"fe8", "fe9", "fea", "feb"});
}

bool is_family(const NicAddress& a, const std::string& family) {
  return family == "any" || a.is_ipv6 == (family == "ipv6");
}

// The best address of each interface, in the order of the interfaces.
std::vector<NicAddress> one_per_interface(const std::vector<NicAddress>& all,
                                          const std::string& family) {
  const auto rank = [&](const NicAddress& a) {
    return (is_family(a, family) ? 0 : 4) + (is_link_local(a) ? 2 : 0) + (a.is_ipv6 ? 1 : 0);
  };
  std::vector<NicAddress> best;
  for (const NicAddress& a : all) {
    const auto it = std::find_if(best.begin(), best.end(),
                                 [&](const NicAddress& b) { return b.interface == a.interface; });
    if (it == best.end()) {
      best.push_back(a);
    } else if (rank(a) < rank(*it)) {
      *it = a;
    }
  }
  return best;
}

std::string names_of(const std::vector<NicAddress>& addresses) {
  std::string text;
  for (const NicAddress& a : addresses) text += (text.empty() ? "" : ", ") + a.interface;
  return text;
}

// From the best to the last resort; nic_choice.h says what each is.
enum class Kind { kNic, kWireless, kVirtual, kVeth, kLinkLocal, kManagement, kContainers, kLoop };

struct Judgement {
  Kind kind;
  std::string why;  // it is not a NIC
};

// Not so a tunnel (vxlan, wireguard), although it runs over a NIC.
bool is_over_hardware(const std::vector<Nic>& nics, const Nic& nic) {
  const bool is_plain =
      nic.kind.empty() || nic.kind == "bond" || nic.kind == "vlan" || nic.kind == "bridge";
  return is_plain && !hardware_of(nics, nic.name).empty();
}

Judgement judge(const NicAddress& a, const std::vector<Nic>& nics) {
  const std::string& name = a.interface;
  const Nic* const nic = find_nic(nics, name);
  if (nic != nullptr ? nic->is_loopback : name == "lo") return {Kind::kLoop, "loopback"};
  const bool is_card = nic != nullptr && !nic->is_virtual;
  const bool is_over_card = nic != nullptr && nic->is_virtual && is_over_hardware(nics, *nic);
  // Names that the container runtimes and hypervisors give.
  if (!is_card && (begins_with_one_of(name, {"docker", "virbr", "cni", "flannel", "cali", "tunl0",
                                             "vxlan.calico", "cilium", "lxc", "lxdbr", "podman",
                                             "weave", "kube", "nodelocaldns", "ovn-", "vnet"}) ||
                   (name.starts_with("br-") && !is_over_card))) {
    return {Kind::kContainers, "of containers or virtual machines"};
  }
  // The drivers of networks over USB; a network card for USB has one of its own.
  if ((is_card && begins_with_one_of(nic->driver, {"cdc_ether", "cdc_eem", "cdc_ncm", "cdc_subset",
                                                   "rndis_host"})) ||
      name.starts_with("idrac")) {
    return {Kind::kManagement, "USB network of a management controller"};
  }
  if (is_link_local(a)) return {Kind::kLinkLocal, "link-local address only"};
  if (nic != nullptr && (nic->kind == "wlan" || nic->kind == "wwan")) {
    return {Kind::kWireless, "wireless"};
  }
  if (!is_card && name.starts_with("veth")) return {Kind::kVeth, "virtual"};
  if (nic != nullptr && !is_card && !is_over_card) return {Kind::kVirtual, "virtual"};
  return {Kind::kNic, ""};
}

class Chooser {
 public:
  Chooser(const std::vector<Nic>& nics, const DeviceChoice& choice) : nics_(nics), want_(choice) {}

  Result<NicChoice> choose(const std::vector<NicAddress>& addresses) {
    list_ = one_per_interface(addresses, want_.family);
    leave_out([&](const NicAddress& a) {  // it would only be tried in vain
      const Nic* const nic = find_nic(nics_, a.interface);
      return nic == nullptr || nic->is_running || nic->is_loopback ? "" : "no carrier";
    });
    if (list_.empty()) {
      warn("this machine has no usable network interface at all: taking 127.0.0.1");
      list_ = {{.interface = "lo", .address = "127.0.0.1"}};
    }
    if (Status s = obey_settings(); !s) return s;
    if (want_.rule.empty() || InterfaceFilter(want_.rule).excludes()) {
      keep_best_kind();
      if (!want_.per_nic) leave_out_slow();
    } else if (!std::all_of(list_.begin(), list_.end(), is_link_local)) {
      leave_out([](auto& a) { return is_link_local(a) ? "link-local address only" : ""; });
    }
    if (!want_.per_nic) {
      std::stable_sort(list_.begin(), list_.end(), [&](const NicAddress& a, const NicAddress& b) {
        return assumed_speed_mbps(nics_, a.interface) > assumed_speed_mbps(nics_, b.interface);
      });
    }
    result_.chosen = std::move(list_);
    return std::move(result_);
  }

 private:
  void warn(std::string sentence) { result_.warnings.push_back(std::move(sentence)); }

  // Those for which `why` has a reason.
  template <class Why>
  void leave_out(Why why) {
    std::erase_if(list_, [&](const NicAddress& a) {
      const std::string reason = why(a);
      if (!reason.empty() && judge(a, nics_).kind != Kind::kLoop) {
        result_.left_out.push_back({a.interface, reason});
      }
      return !reason.empty();
    });
  }

  Status obey_settings() {
    const std::string address = want_.family == "any"    ? "an address"
                                : want_.family == "ipv6" ? "an IPv6 address"
                                                         : "an IPv4 address";
    const std::string all = names_of(list_);
    leave_out([&](const NicAddress& a) {
      return is_family(a, want_.family) ? "" : want_.family == "ipv6" ? "no IPv6" : "no IPv4";
    });
    if (list_.empty()) {
      return invalid_argument("no interface has " + address +
                              ", which RIFFLE_SOCKET_FAMILY or NCCL_SOCKET_FAMILY asks for; "
                              "there are: " +
                              all);
    }
    if (want_.rule.empty()) return Status::ok();
    const std::string setting = want_.rule_source + "=" + want_.rule;
    const std::string candidates = names_of(list_);
    const InterfaceFilter filter(want_.rule);
    leave_out([&](auto& a) { return filter.accepts(a.interface) ? "" : "not in " + setting; });
    if (!list_.empty()) return Status::ok();
    return invalid_argument(setting + " matches no interface that has " + address +
                            " and a carrier; there are: " + candidates);
  }

  void keep_best_kind() {
    const std::vector<NicAddress> all = list_;
    leave_out([&](const NicAddress& a) -> std::string {
      const Nic* const nic = find_nic(nics_, a.interface);
      const bool has_bond = nic != nullptr && std::any_of(all.begin(), all.end(), [&](auto& b) {
                              return b.interface == nic->bond_master;
                            });
      return has_bond ? "in " + nic->bond_master : "";
    });
    Kind best = Kind::kLoop;
    for (const NicAddress& a : list_) best = std::min(best, judge(a, nics_).kind);
    leave_out([&](const NicAddress& a) {
      Judgement judgement = judge(a, nics_);
      return judgement.kind == best ? "" : judgement.why;
    });
    if (best >= Kind::kManagement) {
      warn("no network interface but " + names_of(all) + " is usable: taking " + names_of(list_) +
           ", which other machines usually cannot reach");
    }
  }

  void leave_out_slow() {
    constexpr int kTooSlow = 10;
    int fastest = 0;
    std::string name;
    for (const NicAddress& a : list_) {
      const int speed = real_speed_mbps(nics_, a.interface).value_or(0);
      if (speed > fastest) {
        fastest = speed;
        name = a.interface;
      }
    }
    leave_out([&](const NicAddress& a) -> std::string {
      const std::optional<int> speed = real_speed_mbps(nics_, a.interface);
      if (!speed || *speed > fastest / kTooSlow) return "";
      return std::to_string(*speed) + " Mbit/s where " + name + " has " + std::to_string(fastest);
    });
  }

  const std::vector<Nic>& nics_;
  const DeviceChoice& want_;
  std::vector<NicAddress> list_;  // what is left
  NicChoice result_;
};

}  // namespace

Result<NicChoice> choose_nics(const std::vector<NicAddress>& addresses,
                              const std::vector<Nic>& nics, const DeviceChoice& choice) {
  return Chooser(nics, choice).choose(addresses);
}

std::string to_text(const std::vector<LeftOut>& left_out) {
  constexpr std::size_t kMost = 12;  // a Kubernetes node has an interface per container
  std::string text;
  for (std::size_t i = 0; i < std::min(left_out.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + left_out[i].interface + " (" + left_out[i].why + ")";
  }
  const std::size_t more = left_out.size() - std::min(left_out.size(), kMost);
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

int assumed_speed_mbps(const std::vector<Nic>& nics, const std::string& interface) {
  constexpr int kUnknown = 10'000;
  if (const std::optional<int> real = real_speed_mbps(nics, interface)) return *real;
  const Nic* const nic = find_nic(nics, interface);
  return nic != nullptr ? nic->speed_mbps.value_or(kUnknown) : kUnknown;
}

}  // namespace riffle
